// Package integration has no code of its own. Its folders test sqlfence around real
// drivers and on real databases, a folder a subject:
//
//   - harness: the code that the others share;
//   - guarantees: sqlfence's promises, G1 and G3 to G8;
//   - ledger, ledgerfunction: G2, and the function by which PostgreSQL asks the ledger;
//   - concurrency: G1 and G2 among many writers, in transactions and across waits;
//   - statements: statements that try to get past a guard, and random ones;
//   - replace: SQLite's REPLACE, and every row that it deletes;
//   - effects: every statement of rewrite's golden files, run on the databases;
//   - forged: values that read like sqlfence's own errors, and negative marks;
//   - badinput: hostile names, tokens and arguments;
//   - transparency: results are the same with and without sqlfence;
//   - observe: Observe mode;
//   - errors: the errors' types, lost connections and replies, and retries;
//   - keys, serials: per-row tokens; version columns and edit locks;
//   - tokens, lease, rowlock, changes: the packages of these names; G9 is in tokens;
//   - drivers: features that only one driver has;
//   - fencehttp, fenceotel, fencepgx: the modules of these names; locks and jobs, modules of their own,
//     those of lock services and job libraries, and zombie the process that they stop;
//   - orm: a module of its own, for the weight of what it tests: ORMs, query builders, and
//     in orm/migrations docs/migrations.md and the files in schema;
//   - schema: the fence column on tables that are being written to;
//   - setup: what is said where a table, a column or a privilege is missing;
//   - sealed: sealed tables, and what no client of the database gets past;
//   - verify: what Verify finds, and docs/verify.md;
//   - stmtcache: statements that a connection keeps prepared;
//   - protocol: docs/protocol.md, by programs and clients that don't know of sqlfence;
//   - adopting: docs/adopting.md;
//   - pgbouncer: behind a connection pooler;
//   - mysql, galera, tidb: what only MySQL and MariaDB do, only several nodes at once, and only TiDB;
//   - soak: many clients for long;
//   - conformance: the suite of package conformance on every driver;
//   - negative: the tests above fail when a part of the guard is removed;
//   - applications: a program that runs other people's programs' own tests through sqlfence;
//   - suites: a program that runs the drivers' own tests through sqlfence;
//   - parsers: a module of its own, which compares rewrite with the databases' parsers.
//
// It is a module of its own, so that the drivers' versions never reach a user's build.
package integration
