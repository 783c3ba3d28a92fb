// Package harness is what the tests on real databases share.
//
//   - [Base] and [EachBase]: the drivers, and a fresh database for each test.
//   - [Setting], [Shop] and [EachSetting]: a small shop as the database, at each
//     isolation level.
//   - [Write], [Form], [Ways]: what is written, and the ways to send it.
//   - [Begin], [Go], [Shop.Behind]: transactions, and what waits for them.
//   - [Counter], [Tally]: what reaches the base driver, and what it keeps open.
//   - [Proxy], [Relay], [Blackhole]: what stands between a client and its server.
//   - [Server]: a PostgreSQL server of a test's own, to crash, copy and promote; [MariaDB]: one that crashes.
//   - [NewStore], [NewLeases]: the packages on top.
//
// The servers come from the environment; see [NeedPostgres] and [MySQLDSN]. Databases
// have random names, and each process has one of its own in PostgreSQL, so that
// the packages can be tested at the same time, on one server. For that, each has a
// TestMain that calls [Main].
package harness
