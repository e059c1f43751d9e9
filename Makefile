# Everything a person or CI runs. `make help` lists it.
CARGO    ?= cargo
PYTHON   ?= python3
CC       ?= cc
# What takes the debug information out of what is installed; STRIP=: keeps it.
STRIP    ?= strip
OBJCOPY  ?= objcopy
PROFILE  ?= release
FEATURES ?= script
PREFIX   ?= /usr/local
LIBDIR   ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
DATADIR  ?= $(PREFIX)/share
DESTDIR  ?=

TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)
BUILT      := $(TARGET_DIR)/$(if $(filter dev,$(PROFILE)),debug,$(PROFILE))
VERSION    := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
# First number of the soname; build.rs has the same.
ABI        := $(shell sed -n 's/^const ABI: &str = "\(.*\)";/\1/p' build.rs)
# What a static link needs beside libbyway.a; `cc` itself brings the unwinder.
PRIVATE    := -lpthread -lm -ldl -lrt -lutil
BUILDDIR   := build
EXAMPLES   := $(BUILDDIR)/examples
WHEEL      := $(BUILDDIR)/wheel

.PHONY: help build built absolute install uninstall wheel header jar test vectors bench bench-peers demo baseline fuzz setup clean

help:
	@sed -n 's/^## //p' $(MAKEFILE_LIST)

## make build       shared and static library (PROFILE=release|quick|dev, FEATURES=script)
build:
	$(CARGO) build --lib --profile $(PROFILE) --features "$(FEATURES)"

# Cargo knows what is stale, so it is always asked. `sudo make install` may not have it: then the libraries are taken as a
# `make build` has left them, and that is said.
built:
	@if command -v $(firstword $(CARGO)) > /dev/null; then $(MAKE) --no-print-directory build; \
	elif [ -f $(BUILT)/libbyway.so ] && [ -f $(BUILT)/libbyway.a ]; then \
	  echo "no $(firstword $(CARGO)) here: taking $(BUILT)/libbyway.so and libbyway.a as they are"; \
	else echo "no $(firstword $(CARGO)) here, and no $(BUILT)/libbyway.so" >&2; exit 1; fi

# They are written into byway.pc, where a relative path would mean the folder of whoever reads it.
absolute:
	@for one in "$(PREFIX)" "$(LIBDIR)" "$(INCLUDEDIR)" "$(DATADIR)"; do case "$$one" in ''|/*) ;; *) \
	  echo "$$one: PREFIX, LIBDIR, INCLUDEDIR and DATADIR must be absolute" >&2; exit 2 ;; esac; done

## make install     headers, libraries, pkg-config and CMake files (PREFIX= LIBDIR= INCLUDEDIR= DATADIR= DESTDIR=)
install: absolute built
	install -d "$(DESTDIR)$(INCLUDEDIR)/byway" "$(DESTDIR)$(LIBDIR)/pkgconfig" "$(DESTDIR)$(LIBDIR)/cmake/byway" \
	  "$(DESTDIR)$(DATADIR)/byway"
	install -m 644 include/byway.h include/byway.hpp "$(DESTDIR)$(INCLUDEDIR)/"
	install -m 644 include/byway/*.hpp "$(DESTDIR)$(INCLUDEDIR)/byway/"
	install -m 755 $(BUILT)/libbyway.so "$(DESTDIR)$(LIBDIR)/libbyway.so.$(VERSION)"
	ln -sf libbyway.so.$(VERSION) "$(DESTDIR)$(LIBDIR)/libbyway.so.$(ABI)"
	ln -sf libbyway.so.$(ABI) "$(DESTDIR)$(LIBDIR)/libbyway.so"
	$(STRIP) --strip-debug "$(DESTDIR)$(LIBDIR)/libbyway.so.$(VERSION)"
	@$(LOCALISE)
	install -m 644 tests/c/valgrind.supp "$(DESTDIR)$(DATADIR)/byway/valgrind.supp"
	@sed $(SUBSTITUTE) packaging/byway-static.pc.in > "$(DESTDIR)$(LIBDIR)/pkgconfig/byway-static.pc"
	@sed $(SUBSTITUTE) packaging/byway.pc.in > "$(DESTDIR)$(LIBDIR)/pkgconfig/byway.pc"
	@sed $(SUBSTITUTE) packaging/byway-config.cmake.in > "$(DESTDIR)$(LIBDIR)/cmake/byway/byway-config.cmake"
	@sed $(SUBSTITUTE) packaging/byway-config-version.cmake.in \
	  > "$(DESTDIR)$(LIBDIR)/cmake/byway/byway-config-version.cmake"

SUBSTITUTE = -e 's|@PREFIX@|$(PREFIX)|g' -e 's|@LIBDIR@|$(LIBDIR)|g' -e 's|@INCLUDEDIR@|$(INCLUDEDIR)|g' \
  -e 's|@VERSION@|$(VERSION)|g' -e 's|@ABI@|$(ABI)|g' -e 's|@PRIVATE@|$(PRIVATE)|g' \
  -e "s|@UP@|$$(realpath -m --relative-to='$(LIBDIR)/cmake/byway' '$(LIBDIR)')|g" \
  -e "s|@UPINCLUDE@|$$(realpath -m --relative-to='$(LIBDIR)/cmake/byway' '$(INCLUDEDIR)')|g"

# One object whose only names are byway_*: a program may have another QuickJS, or another library in Rust, beside it. What
# the compiler keeps for optimising at link time would still know the old names, and goes.
LOCALISE = folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && \
  $(CC) -r -nostdlib -o "$$folder/byway.o" -Wl,--whole-archive $(BUILT)/libbyway.a -Wl,--no-whole-archive && \
  $(OBJCOPY) --wildcard --keep-global-symbol='byway_*' --remove-section=.llvmbc \
    --remove-section=.llvmcmd "$$folder/byway.o" && $(STRIP) --strip-debug "$$folder/byway.o" && \
  $(AR) rcs "$$folder/libbyway.a" "$$folder/byway.o" && \
  install -m 644 "$$folder/libbyway.a" "$(DESTDIR)$(LIBDIR)/libbyway.a"

## make uninstall   takes away what install put there (same variables)
uninstall:
	rm -f "$(DESTDIR)$(INCLUDEDIR)/byway.h" "$(DESTDIR)$(INCLUDEDIR)/byway.hpp"
	rm -rf "$(DESTDIR)$(INCLUDEDIR)/byway"
	rm -f "$(DESTDIR)$(LIBDIR)/libbyway.so.$(VERSION)" "$(DESTDIR)$(LIBDIR)/libbyway.so.$(ABI)" \
	  "$(DESTDIR)$(LIBDIR)/libbyway.so" "$(DESTDIR)$(LIBDIR)/libbyway.a"
	rm -f "$(DESTDIR)$(LIBDIR)/pkgconfig/byway.pc" "$(DESTDIR)$(LIBDIR)/pkgconfig/byway-static.pc"
	rm -rf "$(DESTDIR)$(LIBDIR)/cmake/byway" "$(DESTDIR)$(DATADIR)/byway"

## make wheel       build/wheel/byway-*.whl: the Python package with the library inside
wheel: built
	rm -f $(WHEEL)/*.whl
	[ -x $(WHEEL)/venv/bin/pip ] || $(PYTHON) -m venv $(WHEEL)/venv
	install -m 755 $(BUILT)/libbyway.so $(WHEEL)/libbyway.so
	$(STRIP) --strip-debug $(WHEEL)/libbyway.so
	BYWAY_LIBRARY="$(abspath $(WHEEL)/libbyway.so)" $(WHEEL)/venv/bin/pip wheel --quiet --disable-pip-version-check \
	  --no-deps -w $(WHEEL) bindings/python

## make header      regenerate include/byway.h and the golden lists in abi/
header:
	BYWAY_BLESS=1 $(CARGO) test --quiet --test header
	BYWAY_BLESS=1 $(CARGO) test --quiet --test golden -- exports_are numbers_are the_library_describes
	$(PYTHON) bindings/python/abi.py
	$(PYTHON) bindings/java/abi.py

## make jar         bindings/java/target: jar with the library inside, sources, javadoc (NATIVE= a JNI library built already)
jar:
	@echo "building the jar with Maven, and the library in it with Cargo: some minutes the first time"
	cd bindings/java && PROFILE=$(PROFILE) FEATURES="$(FEATURES)" mvn -q -B package -DskipTests $(if $(NATIVE),-Dbyway.native=$(abspath $(NATIVE)))

## make test        everything, every language (PARTS="header c-shared ..." for some); installs what is missing first
test: setup
	$(PYTHON) tests/suite $(PARTS)

## make vectors     every vector runner over BYWAY_VECTORS (default tests/vectors)
vectors:
	$(PYTHON) tests/suite --vectors

## make bench       tables and one line a bar: `bar NAME VALUE LIMIT ok|short`
bench:
	$(PYTHON) benches/c/run.py

## make bench-peers OkHttp 5, OkHttp 4 and Dubbo beside byway in one JVM, one line a bar: how many times as long they take
bench-peers:
	$(PYTHON) benches/peers $(PEERS)

## make baseline    at a release: keeps the ABI that the next one is compared with
baseline:
	$(PYTHON) tests/suite --baseline

## make demo        builds the library and runs the tours: connecting past a dead proxy, racing routes, routing by a rule
demo: $(EXAMPLES)/tour $(EXAMPLES)/dial $(EXAMPLES)/router
	$(EXAMPLES)/tour
	$(EXAMPLES)/dial
	$(EXAMPLES)/router

# Linked anew each time, as the library may be another one.
$(EXAMPLES)/%: examples/%.c include/byway.h built
	@mkdir -p $(EXAMPLES)
	$(CC) -std=c99 -D_GNU_SOURCE -Wall -Wextra -O1 -g -Iinclude -o $@ $< $(BUILT)/libbyway.a $(PRIVATE)

## make fuzz        call sequences over the whole header, and every parser, under random input (RUNS=20000, SEED=)
fuzz:
	$(PYTHON) tests/suite --fuzz $(or $(RUNS),20000) $(SEED)

## make setup       installs the Debian packages of .ci/packages.txt that are missing
setup:
	@.ci/setup

## make clean       takes away build/ and target/
clean:
	rm -rf $(BUILDDIR)
	$(CARGO) clean
