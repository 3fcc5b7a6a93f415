"""Studies: what is measured of a published corpus. Each finds a part of the report, and is made again only if need be."""
