from openlineage.client.generated.base import BaseFacet, Dataset

class OperatorLineage:
    inputs: list[Dataset]
    outputs: list[Dataset]
    run_facets: dict[str, BaseFacet]
    job_facets: dict[str, BaseFacet]
    def __init__(
        self,
        inputs: list[Dataset] = ...,
        outputs: list[Dataset] = ...,
        run_facets: dict[str, BaseFacet] = ...,
        job_facets: dict[str, BaseFacet] = ...,
    ) -> None: ...
