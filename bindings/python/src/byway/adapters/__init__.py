"""byway under other people's clients. Each module needs its client installed."""
