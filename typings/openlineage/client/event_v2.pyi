from collections.abc import Mapping

from openlineage.client.generated.base import Dataset, DatasetFacet

class InputDataset(Dataset):
    def __init__(
        self,
        namespace: str,
        name: str,
        facets: dict[str, DatasetFacet] | None = None,
        *,
        inputFacets: Mapping[str, DatasetFacet] | None = None,
    ) -> None: ...

class OutputDataset(Dataset):
    def __init__(
        self,
        namespace: str,
        name: str,
        facets: dict[str, DatasetFacet] | None = None,
        *,
        outputFacets: Mapping[str, DatasetFacet] | None = None,
    ) -> None: ...
