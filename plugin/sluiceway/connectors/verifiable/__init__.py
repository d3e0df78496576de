"""VerifiableSource and VerifiableSink: send numbered records and check that each arrives once and in order."""
