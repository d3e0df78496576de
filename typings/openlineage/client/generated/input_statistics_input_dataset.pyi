from openlineage.client.generated.base import DatasetFacet

class InputStatisticsInputDatasetFacet(DatasetFacet):
    def __init__(self, rowCount: int | None = None, size: int | None = None, fileCount: int | None = None) -> None: ...
