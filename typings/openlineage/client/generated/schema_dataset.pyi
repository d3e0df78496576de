from openlineage.client.generated.base import DatasetFacet

class SchemaDatasetFacetFields:
    def __init__(self, name: str, type: str | None = None, description: str | None = None) -> None: ...

class SchemaDatasetFacet(DatasetFacet):
    def __init__(self, fields: list[SchemaDatasetFacetFields] | None = None) -> None: ...
