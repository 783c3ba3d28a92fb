// Package integration has no code. Its folders test sqlfence with real drivers and on real databases, a folder a
// subject, in two circles.
//
// The folders of promises hold what docs/promises.md promises, once on each of PostgreSQL, SQLite and MariaDB. make
// test runs them:
//
//   - guarantees: rows, all or nothing, fails closed, one round trip, its own tables, known servers, transparent (G1,
//     G3 to G8, G11);
//   - ledger, ledgerfunction: the ledger (G2), and the function by which PostgreSQL's guards query the ledger;
//   - concurrency: G1 and G2 among many writers, in transactions and across waits;
//   - orders: the steps of two and three sessions in every order;
//   - statements: statements that try to get past a guard, and random ones;
//   - replace: SQLite's REPLACE, and every row that it deletes;
//   - effects: every statement of rewrite's golden files, run on the databases;
//   - forged: values that read like sqlfence's own errors (G10), and negative stored tokens;
//   - badinput: hostile names, tokens and arguments;
//   - transparency: results are the same with and without sqlfence (G7);
//   - observe: Observe mode;
//   - errors: the errors' types, lost connections and replies, and retries;
//   - keys, serials, claims: per-row tokens; row versions and edit locks; claims of rows;
//   - tokens, lease, rowlock, changes: the packages of these names; G9 is in tokens;
//   - fencepgx: the module of this name;
//   - drivers: features that only one driver has;
//   - schema, sealed: the fence column on tables that are being written to; sealed tables;
//   - setup, verify: errors where a table, a column or a privilege is missing; what verify.Check finds;
//   - stmtcache: prepared statements that a connection caches;
//   - mysql: what only MySQL and MariaDB do;
//   - conformance: the suite of package conformance on every driver.
//
// The folders of extended need other programs, services or libraries, or take long. make test-all runs them as well:
//
//   - orm, parsers, jobs, locks, servers: modules of their own, because of what they require: ORMs, query builders and
//     migration tools; the databases' own parsers, compared with rewrite; job libraries; lock services; fake servers;
//   - drivers: SQLite drivers that are used less often;
//   - fencehttp, fenceotel: the modules of these names;
//   - pgbouncer, protocol: poolers; docs/protocol.md by programs in other languages;
//   - adopting: docs/adopting.md;
//   - group, tidb, ha: Galera and Group Replication, TiDB, and PostgreSQL with Patroni;
//   - soak: many clients for long;
//   - negative: the tests of promises fail when a part of a guard is removed;
//   - release, scripts: what users install, and this repository's scripts;
//   - applications, suites, versions: programs that run the tests of other people's programs, the drivers' own
//     tests, and the promises on other versions of the servers.
//
// Package harness has the code that they share, and zombie has the process that the tests of jobs and locks stop.
// Command link builds one test program from many folders.
//
// The tests are a module of their own, so that the drivers' versions never reach a user's build.
package integration
