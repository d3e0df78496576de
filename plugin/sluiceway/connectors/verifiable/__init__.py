"""VerifiableSource and VerifiableSink: numbered records and where they arrived, so that loss and repetition can be counted."""
