# The front door. meson and ninja do the work, in build/; the programs end up in
# build/bin. See CONTRIBUTING.md.

PREFIX ?= /usr/local
DESTDIR ?=
MESON ?= /usr/bin/meson
PYTHON := /usr/bin/python3

RELEASE := build/release
PROGRAMS := src/cli/paddock src/keeper/paddockd src/api/paddock-api src/hook/paddock-hook src/ai/paddock-ai src/gate/paddock-gate src/gauge/paddock-gauge src/vault/paddock-vault src/signer/paddock-signer src/init/paddock-init

# The desktop application needs WebKitGTK, and nothing else here does: only `make window` and the tests build it.
WINDOW := src/window/paddock-window src/window/paddock-watch

# All but paddock-init, which is static, and runs in sandboxes whose images have no libasan.
SANITIZED := $(filter-out src/init/paddock-init,$(PROGRAMS))

.DEFAULT_GOAL := build
.PHONY: build window run test check dashboard sdk test-asan test-kernels test-upgrade soak mutants bench deb deb-window install install-files install-window uninstall format clean

# Programs look for each other beside themselves: build/bin holds copies, not links.
# install(1) replaces a file instead of writing into one that may be running.
build:
	@scripts/deps build
	@test -f $(RELEASE)/build.ninja || CC=gcc $(MESON) setup $(RELEASE) -Dbuildtype=release -Dwerror=true -Dtests=disabled
	@ninja -C $(RELEASE) $(PROGRAMS)
	@mkdir -p build/bin
	@for p in $(PROGRAMS); do \
		cmp -s $(RELEASE)/$$p build/bin/$${p##*/} || install -m 755 $(RELEASE)/$$p build/bin/ || exit 1; \
	done

window: build
	@scripts/deps window
	@grep -q src/window/paddock-window: $(RELEASE)/build.ninja || $(MESON) configure $(RELEASE) -Dwindow=enabled
	@ninja -C $(RELEASE) $(WINDOW)
	@for p in $(WINDOW); do \
		cmp -s $(RELEASE)/$$p build/bin/$${p##*/} || install -m 755 $(RELEASE)/$$p build/bin/ || exit 1; \
	done

run: build
	@printf '%s\n' '' 'When it is ready, try in another terminal (in this directory):' '' \
		"  build/bin/paddock run -- python3 -c 'print(6*7)'" \
		"  build/bin/paddock create && build/bin/paddock ls" \
		'  http://127.0.0.1:7080/ in a browser, with the key in var/lib/admin.key' \
		'  http://127.0.0.1:7080/docs for the documentation' \
		'  curl -s -H "Authorization: Bearer $$(cat var/lib/admin.key)" http://127.0.0.1:7080/v1/sandboxes' ''
	@exec build/bin/paddock serve --data-dir ./var/lib --run-dir ./var/run

test:
	@scripts/deps build test format arm64
	@exec scripts/test

# Format, layers, names in documents, duplicates, what is exported for nothing: seconds. `make test` runs it, too.
check: build
	@scripts/deps format arm64
	@exec scripts/check

# Tests of every dialect, and of what paddockd does, with sanitizers (ASan, UBSan) in all programs of the host: a quarter of an hour.
# A finding is in the daemon's log, and fails the test that ends the daemon. Leaks are looked for in paddockd and paddock: the
# others have given up /proc, which that needs.
test-asan: build
	@scripts/deps test
	@test -f build/asan/build.ninja || CC=gcc $(MESON) setup build/asan -Dbuildtype=debug -Doptimization=1 \
		-Db_sanitize=address,undefined -Dwerror=true -Dtests=enabled
	@ninja -C build/asan $(SANITIZED)
	@mkdir -p build/asan/bin && cp build/bin/* build/asan/bin/
	@for p in $(SANITIZED); do install -m 755 build/asan/$$p build/asan/bin/ || exit 1; done
	PADDOCK_BIN=build/asan/bin PADDOCK_SLOW=4 PADDOCK_SANITIZED=1 $(PYTHON) -m pytest -q -p no:cacheprovider \
		test/it/test_dialects.py test/it/test_mcp.py test/it/test_sandkasten.py test/it/test_agentbox.py \
		test/it/test_agent_sandbox.py test/it/test_aio*.py test/it/test_envd.py test/it/test_e2b.py test/it/test_http.py \
		test/it/test_lifecycle.py test/it/test_snapshots.py test/it/test_restart.py test/it/test_mounts.py test/it/test_disk.py \
		test/it/test_pool.py test/it/test_workspaces.py test/it/test_images.py test/it/test_posture_outside.py test/it/test_doctor.py \
		test/it/test_layouts.py

# The same programs on other kernels, in guests under emulation: an hour or more. See test/kernels.
test-kernels: build
	@scripts/deps test
	@exec $(PYTHON) test/kernels/run.py all

# What takes longer than `make test` may: a thousand cycles with random kills in between.
soak: build
	@scripts/deps test
	PADDOCK_CHURN=1000 PADDOCK_HANGS_S=7200 $(PYTHON) -m pytest -q -p no:cacheprovider test/it/test_leaks.py

# Small bugs of a list, planted one at a time: which of them do the tests not find? Three quarters of an hour. See test/mutants.
mutants: build
	@scripts/deps test
	@exec $(PYTHON) test/mutants/run.py

# The dashboard's committed pages (dashboard/built), from its sources. Building Paddock itself needs no npm.
dashboard:
	@scripts/deps dashboard
	@exec scripts/dashboard --commit

# The packages of the SDKs, in build/sdk. Each SDK has a script of its own.
sdk:
	@scripts/deps sdk
	@for script in sdk/*/build; do $$script build/sdk || exit 1; done

bench: build
	@scripts/deps bench
	@exec $(PYTHON) test/bench/bench.py

# build/deb/paddock_VERSION_ARCH.deb, for this Debian and newer ones.
deb: build
	@scripts/deps deb
	@exec scripts/deb

# build/deb/paddock-window_VERSION_ARCH.deb: the desktop application, apart from the daemon.
deb-window: window
	@scripts/deps deb
	@exec scripts/deb --window

# Before a release: these programs take over the sandboxes of an earlier commit's, here, and in a guest as packages.
BEFORE = main
test-upgrade: build
	@scripts/deps deb
	@scripts/deps test
	@before=$$(scripts/deb --commit $(BEFORE)) && \
		PADDOCK_BEFORE_BIN=$${before%deb/*}bin $(PYTHON) -m pytest -q -p no:cacheprovider test/it/upgrade.py && \
		PADDOCK_BEFORE=$$before exec $(PYTHON) test/kernels/run.py debian12 --tests test/kernels/test_deb.py

install: build
	@$(MAKE) --no-print-directory install-files

# Without a look at the sources: what is in build/bin.
install-files:
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/libexec/paddock \
		$(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/share/man/man5 \
		$(DESTDIR)$(PREFIX)/lib/systemd/system $(DESTDIR)/etc/paddock
	install -m 755 build/bin/paddock $(DESTDIR)$(PREFIX)/bin/
	install -m 755 build/bin/paddockd build/bin/paddock-api build/bin/paddock-hook build/bin/paddock-ai build/bin/paddock-gate build/bin/paddock-gauge build/bin/paddock-vault build/bin/paddock-signer build/bin/paddock-init $(DESTDIR)$(PREFIX)/libexec/paddock/
	install -m 644 man/paddock.1 $(DESTDIR)$(PREFIX)/share/man/man1/
	install -m 644 man/paddock.yaml.5 $(DESTDIR)$(PREFIX)/share/man/man5/
	sed 's|/usr/local|$(PREFIX)|g' etc/paddock.service > $(DESTDIR)$(PREFIX)/lib/systemd/system/paddock.service
	test -e $(DESTDIR)/etc/paddock/paddock.yaml || install -m 644 etc/paddock.yaml $(DESTDIR)/etc/paddock/

# What `make window` has built.
install-window:
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/libexec/paddock $(DESTDIR)$(PREFIX)/share/man/man1 \
		$(DESTDIR)$(PREFIX)/share/applications $(DESTDIR)$(PREFIX)/share/metainfo \
		$(DESTDIR)$(PREFIX)/share/icons/hicolor/scalable/apps
	install -m 755 build/bin/paddock-window $(DESTDIR)$(PREFIX)/bin/
	install -m 755 build/bin/paddock-watch $(DESTDIR)$(PREFIX)/libexec/paddock/
	install -m 644 man/paddock-window.1 $(DESTDIR)$(PREFIX)/share/man/man1/
	install -m 644 etc/window/org.paddock.Window.desktop $(DESTDIR)$(PREFIX)/share/applications/
	install -m 644 etc/window/org.paddock.Window.metainfo.xml $(DESTDIR)$(PREFIX)/share/metainfo/
	install -m 644 etc/window/org.paddock.Window.svg $(DESTDIR)$(PREFIX)/share/icons/hicolor/scalable/apps/

# Leaves the configuration and the data.
uninstall:
	rm -rf $(DESTDIR)$(PREFIX)/libexec/paddock
	rm -f $(DESTDIR)$(PREFIX)/bin/paddock $(DESTDIR)$(PREFIX)/share/man/man1/paddock.1 \
		$(DESTDIR)$(PREFIX)/share/man/man5/paddock.yaml.5 $(DESTDIR)$(PREFIX)/lib/systemd/system/paddock.service \
		$(DESTDIR)$(PREFIX)/bin/paddock-window $(DESTDIR)$(PREFIX)/share/man/man1/paddock-window.1 \
		$(DESTDIR)$(PREFIX)/share/applications/org.paddock.Window.desktop \
		$(DESTDIR)$(PREFIX)/share/metainfo/org.paddock.Window.metainfo.xml \
		$(DESTDIR)$(PREFIX)/share/icons/hicolor/scalable/apps/org.paddock.Window.svg

format:
	@scripts/deps format
	find src test -name '*.[ch]' -print0 | xargs -0 clang-format-14 -i

clean:
	rm -rf build
