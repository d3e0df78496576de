"""OpenTelemetry: what its environment variables ask for, and spans of connectors and tasks. The SDK is optional."""
