# Everything a person or CI runs. `make help` lists it.
CARGO ?= cargo

.PHONY: help
help:
	@sed -n 's/^## //p' $(MAKEFILE_LIST)

## make header      regenerate include/byway.h and the golden lists in abi/
.PHONY: header
header:
	BYWAY_BLESS=1 $(CARGO) test --quiet --test header
