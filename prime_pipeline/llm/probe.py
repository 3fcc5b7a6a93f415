"""Whether an endpoint answers and knows a model, without asking for anything that is paid."""

from __future__ import annotations

import json

from prime_pipeline.errors import EndpointUnusable
from prime_pipeline.llm.transport import Failed, Transport

_MOST_BYTES = 8 << 20
_TIMEOUT_S = 10.0


def listed_models(base_url: str, api_key: str, timeout_s: float = _TIMEOUT_S) -> frozenset[str]:
    """The names under ``GET /models``, which every endpoint of this kind has and none charges for.

    Raises:
        EndpointUnusable: It cannot be reached, refuses the key, or lists nothing that could be read.
    """
    transport = Transport(base_url, api_key.strip(), timeout_s)
    try:
        body = transport.models(_MOST_BYTES)
        return frozenset(str(entry["id"]) for entry in json.loads(body)["data"])
    except Failed as error:
        raise EndpointUnusable(base_url, error.failure.reason) from None
    except (ValueError, KeyError, TypeError):
        raise EndpointUnusable(base_url, "it does not list its models as such endpoints do") from None
    finally:
        transport.close()
