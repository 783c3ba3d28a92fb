package main

import (
	"fmt"
	"strings"
)

// family is what reads and writes SQLite's files or its language, and where its tests are.
var family = []struct{ name, state, how, tests string }{
	{"mattn/go-sqlite3, modernc.org/sqlite", "supported", "all tests", "test/integration/promises/guarantees"},
	{"glebarez/go-sqlite", "supported", "[conformance](compatibility.md#drivers)", "test/integration/extended/drivers/glebarez"},
	{"ncruces/go-sqlite3 0.37", "supported, with `WithDialect(sqlfence.SQLite)`", "conformance", "test/integration/extended/drivers/ncruces"},
	{"Litestream 0.3, beside the writers", "supported",
		"a storm while it copies; after a restore [`Repair`](../tokens.md#after-a-failover-or-a-restore)", "test/integration/extended/drivers/litestream"},
	{"rqlite, by gorqlite/stdlib", "refused", "`Begin`, `Commit` and `Rollback` do nothing", "test/integration/extended/drivers/rqlite"},
	{"libSQL, by go-libsql", "refused",
		"errors quote the statement, and `?1` is rejected. Without the refusal a stale write failed, but not as `ErrStale`", "internal/session"},
	{"dqlite 1.18, by go-dqlite/v3", "tested, guarded writes by `Query` refused", "[SQLite](../sqlite.md#dqlite)", "test/dqlite"},
	{"dqlite, by go-dqlite before version 3", "refused", "a node may acknowledge an `INSERT … RETURNING` without replication", "test/dqlite"},
	{"sqld and Turso, by libsql-client-go", "not tested", "there was no server", ""},
	{"LiteFS", "not tested", "it is a file system (FUSE)", ""},
	{"Cloudflare D1", "not tested", "no driver for `database/sql` was at hand", ""},
}

func familyTable() string {
	var b strings.Builder
	b.WriteString("| driver or server | state | tests or reason |\n|---|---|---|\n")
	for _, m := range family {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", m.name, m.state, m.how)
	}
	return b.String()
}
