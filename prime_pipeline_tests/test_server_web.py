"""The HTTP service and its page: answers, limits, hostile input, tokens, and that all text of documents stays text."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from selectolax.lexbor import LexborHTMLParser
from starlette.testclient import TestClient

from prime_pipeline.server.answers import MAX_QUERY_CHARACTERS, MAX_TOP_K, QueryService
from prime_pipeline.server.guard import is_loopback
from prime_pipeline.server.openapi import openapi_document
from prime_pipeline.server.web import application
from prime_pipeline_tests.papers import SHORT, WORDY, opened, publish, write_papers
from prime_pipeline_tests.shelf import GUIDE, Shelf

TOKEN = "a-token-of-some-length"
EVIL = "</title></style><script>alert(1)</script><img src=http://e.example/x onerror=alert(1)>&amp;'\""


def client_of(shelf: Shelf, token: str = "") -> TestClient:
    app = application(QueryService(shelf.workspace), token)
    return TestClient(app, base_url="http://localhost:8765", raise_server_exceptions=False)


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shelf]:
    shelf = Shelf(tmp_path_factory.mktemp("shelf"))
    title = EVIL.replace("'", "''")
    shelf.publish(
        {**GUIDE, "odd/ü#1.md": f"---\ntitle: '{title}'\n---\n\n## Spice {EVIL}\n\nPepper {EVIL}\n"}
    )
    yield shelf
    shelf.workspace.close()


@pytest.fixture
def client(shelf: Shelf) -> TestClient:
    return client_of(shelf)


def problem_of(response: httpx2.Response, status: int) -> str:
    """The detail of a problem document."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    problem = response.json()
    assert problem["status"] == status
    assert set(problem) == {"type", "title", "status", "detail", "error"}
    return str(problem["detail"])


def found(client: TestClient, **parameters: Any) -> list[str]:
    response = client.get("/search", params=parameters)
    assert response.status_code == 200, response.text
    return [hit["section_id"] for hit in response.json()["hits"]]


# --- answers ------------------------------------------------------------------------------------------------------


def test_a_search_answers_as_the_command_does(client: TestClient, shelf: Shelf) -> None:
    answer = client.get("/search", params={"query": "which engine burns fuel", "top_k": 1}).json()
    assert (answer["query"], answer["variant"]) == ("which engine burns fuel", "offline")
    assert answer["build"] == shelf.workspace.served.build_id
    (hit,) = answer["hits"]
    assert (hit["rank"], hit["section_id"], hit["heading_path"]) == (1, "guide/car.md#1", ["Engine"])
    assert (hit["source_path"], hit["start_line"], hit["end_line"]) == ("guide/car.md", 7, 9)
    assert hit["text"] == "## Engine\n\nAn engine burns fuel.\n"
    assert hit["restructured"] is None


@pytest.mark.parametrize(
    ("filters", "documents"),
    [
        ({"path": "guide/"}, {"guide/bread.md", "guide/car.md"}),
        ({"path": "*/c*.md"}, {"guide/car.md"}),
        ({"tag": ["Kitchen", "flour"]}, {"guide/bread.md"}),
        ({"tag": ["kitchen", "garage"]}, set()),
        ({"since": "2024-05-01", "until": "2024-12-31"}, {"guide/bread.md"}),
        ({"since": "2025-01-01", "path": "", "tag": "", "until": ""}, {"guide/car.md"}),
    ],
)
def test_filters_leave_every_section_that_passes(
    client: TestClient, filters: dict[str, Any], documents: set[str]
) -> None:
    sections = found(client, query="engine", top_k=MAX_TOP_K, **filters)
    assert {section.partition("#")[0] for section in sections} == documents


def test_an_explanation_tells_of_words_arms_and_verdict(client: TestClient) -> None:
    answer = client.get("/explain", params={"query": "engine zebra", "top_k": 1}).json()
    assert (answer["documents"], answer["unknown_words"]) == (4, ["zebra"])
    (explained,) = answer["hits"]
    assert explained["hit"]["doc_id"] == "guide/car.md"
    assert explained["arms"]["document_bm25"]["rank"] == 1
    assert [word["word"] for word in explained["words"]] == ["engine"]
    assert explained["verdict"]["status"] == "raw"


def test_a_document_has_its_sections_and_properties(client: TestClient) -> None:
    answer = client.get("/documents/guide/bread.md").json()
    assert answer["properties"] == {"tags": "kitchen, flour", "date": "2024-05-01"}
    assert [section["section_id"] for section in answer["sections"]] == [
        "guide/bread.md#1",
        "guide/bread.md#2",
    ]
    assert answer["sections"][1]["text"] == "## Oven\n\nHeat the oven.\n"


def test_raw_and_restructured_text_stand_side_by_side(tmp_path: Path) -> None:
    workspace = opened(tmp_path / "home", write_papers(tmp_path / "papers.json"), mode="full", queries=None)
    publish(workspace)
    client = TestClient(application(QueryService(workspace)), base_url="http://localhost")
    sections = client.get("/documents/alpha").json()["sections"]
    assert WORDY in sections[0]["text"]
    assert sections[0]["restructured"].startswith("## Scheduling\n\nThe scheduler of the Alpha project")
    assert (SHORT in sections[1]["text"], sections[1]["restructured"]) == (True, None)
    page = LexborHTMLParser(client.get("/", params={"query": "workers of Alpha", "path": ""}).text)
    first = page.css("article")[0]
    assert [side.text() for side in first.css(".side h4")] == ["Raw", "Restructured"]
    assert "Moreover, the" in [cut.text() for cut in first.css("del")]
    assert first.css(".text")[0].text().strip() == sections[0]["text"].strip()
    assert [badge.text() for badge in first.css(".badge")] == ["accepted"]
    workspace.close()


def test_health_says_what_is_served(client: TestClient, shelf: Shelf) -> None:
    health = client.get("/health").json()
    assert (health["status"], health["build"]) == ("ok", shelf.workspace.served.build_id)
    assert (health["documents"], health["sections"], health["vectors"]) == (4, 5, 4)
    assert health["age_s"] >= 0
    assert health["problem"] is None


def test_before_anything_is_published_every_answer_is_503_and_then_none(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    client = client_of(shelf)
    for address in ("/health", "/search?query=x", "/explain?query=x", "/documents/x"):
        assert "prime refresh" in problem_of(client.get(address), 503)
    assert "prime refresh" in client.get("/?query=x").text
    assert client.get("/").status_code == 200
    shelf.publish()
    assert client.get("/health").json()["documents"] == 3
    damaged = shelf.workspace.builds("offline").path(shelf.publish({"new.md": "# New\n\nText.\n"}))
    (damaged / "metadata.sqlite").unlink()
    behind = client.get("/health").json()
    assert (behind["status"], behind["documents"]) == ("behind", 3)
    assert "metadata.sqlite is missing" in behind["problem"]
    shelf.workspace.close()


# --- what is refused ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "culprit"),
    [
        ({}, "query: Field required"),
        ({"query": "x" * (MAX_QUERY_CHARACTERS + 1)}, f"query: .* at most {MAX_QUERY_CHARACTERS}"),
        ({"query": "engine " * 9_000}, "query: .* at most"),
        ({"query": "x", "top_k": 0}, "top_k: .* greater than or equal to 1"),
        ({"query": "x", "top_k": MAX_TOP_K + 1}, f"top_k: .* less than or equal to {MAX_TOP_K}"),
        ({"query": "x", "top_k": "many"}, "top_k: .* integer"),
        ({"query": "x", "since": "yesterday"}, "since: .* date"),
        (
            {"query": "x", "since": "2025-01-01", "until": "2024-01-01"},
            "2025-01-01 lies after .* 2024-01-01.*: swap",
        ),
        ({"query": "x", "path": "x" * 501}, "path: "),
        ({"query": "x", "tag": ["x"] * 21}, "tag: "),
        ({"query": "x", "nonsense" * 7_000: "x"}, "nonsense"),
        ({"query": ["x", "y"]}, "query is given 2 times"),
    ],
)
def test_what_is_out_of_range_is_refused_by_name(
    client: TestClient, parameters: dict[str, Any], culprit: str
) -> None:
    for address in ("/search", "/explain"):
        detail = problem_of(client.get(address, params=parameters), 400)
        assert re.search(culprit, detail)
        assert len(detail) < 1_200


@pytest.mark.parametrize(
    "query",
    [
        "title:engine -fuel NEAR/3 *",
        'engine" OR 1=1; DROP TABLE documents; --',
        "engine\x00fuel",
        "{engine} ^fuel (",
        "engine " * 250,
        "<b>engine</b>",
    ],
)
def test_nothing_in_a_query_is_syntax(client: TestClient, query: str) -> None:
    assert found(client, query=query)[0] == "guide/car.md#1"


@pytest.mark.parametrize("query", ["", "%00", "?!", "%ff%fe"])
def test_a_query_without_a_known_word_is_answered(client: TestClient, query: str) -> None:
    response = client.get(f"/search?query={query}")
    assert response.status_code == 200


@pytest.mark.parametrize(
    "address",
    [
        "..%2f..%2f..%2fetc%2fpasswd",
        "%2e%2e/prime.toml",
        "%2fetc/passwd",
        "guide%00/bread.md",
        "guide/bread.md%00",
        "%ff%fe",
        "' OR 1=1 --",
        "guide/",
        "",
        "x" * 10_000,
    ],
)
def test_ids_are_looked_up_and_never_opened(client: TestClient, address: str) -> None:
    response = client.get(httpx2.URL(f"http://localhost/documents/{address}"))
    assert "take ids from search results" in problem_of(response, 404)


def test_ids_with_odd_characters_are_found(client: TestClient) -> None:
    (hit,) = client.get("/search", params={"query": "pepper", "top_k": 1}).json()["hits"]
    assert hit["doc_id"] == "odd/ü#1.md"
    page = LexborHTMLParser(client.get("/", params={"query": "pepper", "top_k": "1"}).text)
    (link,) = page.css("article a")
    assert client.get(str(link.attributes["href"])).json()["doc_id"] == hit["doc_id"]


def test_other_addresses_and_methods_are_problems_too(client: TestClient) -> None:
    assert "/openapi.json" in problem_of(client.get("/nothing"), 404)
    assert "GET only" in problem_of(client.post("/search"), 405)


def test_a_fault_of_the_server_tells_nothing_of_itself(shelf: Shelf) -> None:
    service = QueryService(shelf.workspace)
    service.__dict__["_live"] = None  # no state that it can be in
    client = TestClient(application(service), base_url="http://localhost", raise_server_exceptions=False)
    detail = problem_of(client.get("/health"), 500)
    assert "log" in detail
    assert "NoneType" not in detail


# --- who may ask --------------------------------------------------------------------------------------------------


ADDRESSES = (
    "/",
    "/search?query=x",
    "/explain?query=x",
    "/documents/sky.md",
    "/health",
    "/openapi.json",
    "/none",
)


def basic(password: str) -> str:
    return "Basic " + base64.b64encode(f"anybody:{password}".encode()).decode()


@pytest.mark.parametrize(
    "authorization",
    [
        "",
        "Bearer",
        "Bearer wrong",
        f"Bearer {TOKEN}x",
        f"Digest {TOKEN}",
        TOKEN,
        basic("wrong"),
        "Basic ?",
        "Basic /w==",
    ],
)
def test_without_the_token_nothing_is_told(shelf: Shelf, authorization: str) -> None:
    client = client_of(shelf, TOKEN)
    for address in ADDRESSES:
        response = client.get(address, headers={"Authorization": authorization})
        assert "Authorization: Bearer TOKEN" in problem_of(response, 401)
        assert response.headers["www-authenticate"].startswith("Bearer, Basic")


@pytest.mark.parametrize("authorization", [f"Bearer {TOKEN}", f"bearer  {TOKEN}", basic(TOKEN)])
def test_the_token_opens_whatever_the_host_is_called(shelf: Shelf, authorization: str) -> None:
    headers = {"Authorization": authorization, "Host": "search.example.com"}
    client = client_of(shelf, TOKEN)
    assert [client.get(address, headers=headers).status_code for address in ADDRESSES] == [200] * 6 + [404]


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("127.0.0.1:8765", 200),
        ("[::1]:8765", 200),
        ("LOCALHOST:1", 200),
        ("evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("localhost.evil.example:8765", 421),
        ("[", 421),
        ("", 421),
    ],
)
def test_without_a_token_only_loopback_names_are_answered(client: TestClient, host: str, status: int) -> None:
    assert client.get("/health", headers={"Host": host}).status_code == status


def test_only_loopback_is_loopback() -> None:
    assert all(map(is_loopback, ("localhost", "127.0.0.1", "127.1.2.3", "::1", "[::1]")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "192.168.0.1", "example.com", "", "127.0.0.1.example")))


# --- the page -----------------------------------------------------------------------------------------------------


def test_the_page_shows_again_what_was_entered_and_why_there_is_no_answer(client: TestClient) -> None:
    response = client.get("/", params={"query": EVIL, "top_k": "99", "path": EVIL, "tag": EVIL, "since": "x"})
    page = LexborHTMLParser(response.text)
    assert response.status_code == 400
    entered = {str(node.attributes["name"]): node.attributes.get("value") for node in page.css("input")}
    assert (entered["query"], entered["path"], entered["tag"], entered["since"]) == (EVIL, EVIL, EVIL, "x")
    (alert,) = page.css("[role=alert]")
    assert "top_k" in alert.text()


def test_what_documents_say_is_text_on_the_page(client: TestClient) -> None:
    page = LexborHTMLParser(client.get("/", params={"query": "pepper <script>"}).text)
    assert not page.css("script, img, [onerror], [style]")
    assert len(page.css("style")) == 1
    assert any("<script>alert(1)</script>" in node.text() for node in page.css(".text"))
    assert any("<script>alert(1)</script>" in node.text() for node in page.css("h3"))


def test_the_page_loads_nothing_and_may_load_nothing(client: TestClient) -> None:
    response = client.get("/", params={"query": "engine"})
    page = LexborHTMLParser(response.text)
    assert not page.css("script, link, iframe, object, embed, base, img, [src]")
    assert {str(form.attributes["action"]) for form in page.css("form")} == {"/"}
    assert all(str(link.attributes["href"]).startswith("/documents/") for link in page.css("a"))
    (style,) = re.findall("<style>(.*?)</style>", response.text, re.DOTALL)
    assert not re.search(r"url\(|@import|https?:", style)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'self'"
    assert response.headers["content-security-policy"] == f"{policy}; frame-ancestors 'none'"
    (meta,) = page.css('meta[http-equiv="Content-Security-Policy"]')
    assert meta.attributes["content"] == policy


def test_no_answer_is_kept_or_guessed_by_a_browser(client: TestClient) -> None:
    for address in ADDRESSES:
        headers = client.get(address).headers
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["content-security-policy"].startswith("default-src 'none'")


# --- OpenAPI ------------------------------------------------------------------------------------------------------


def test_the_description_names_every_address_and_limit(client: TestClient) -> None:
    description = client.get("/openapi.json").json()
    assert description["openapi"] == "3.1.0"
    assert set(description["paths"]) == {"/search", "/explain", "/documents/{doc_id}", "/health"}
    parameters = {p["name"]: p for p in description["paths"]["/search"]["get"]["parameters"]}
    assert list(parameters) == ["query", "top_k", "path", "tag", "since", "until"]
    assert [p["required"] for p in parameters.values()] == [True] + [False] * 5
    assert parameters["query"]["schema"]["maxLength"] == MAX_QUERY_CHARACTERS
    assert f'"maximum": {MAX_TOP_K}' in json.dumps(parameters["top_k"]["schema"])
    assert all(p["description"] for p in parameters.values())


@pytest.mark.parametrize(
    ("path", "address"),
    [
        ("/search", "/search?query=engine"),
        ("/explain", "/explain?query=engine"),
        ("/documents/{doc_id}", "/documents/sky.md"),
        ("/health", "/health"),
    ],
)
def test_answers_are_as_they_are_described(client: TestClient, path: str, address: str) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    responses = openapi_document()["paths"][path]["get"]["responses"]

    def check(answer: Any, status: str, media_type: str) -> None:
        schema = responses[status]["content"][media_type]["schema"]
        jsonschema.Draft202012Validator({**schema, "components": openapi_document()["components"]}).validate(
            answer
        )

    check(client.get(address).json(), "200", "application/json")
    unauthorized = client_of(Shelf(Path("unused")), TOKEN).get(address)
    check(unauthorized.json(), "401", "application/problem+json")
