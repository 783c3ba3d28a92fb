// Package harness holds the shared code of tests on real databases.
//
//   - [Base] and [EachBase]: the drivers, and a fresh database for each test.
//   - [Setting], [Shop] and [EachSetting]: a small shop as the database, at each
//     isolation level.
//   - [Write], [Form], [Ways]: writes, and the ways to send them.
//   - [Begin], [Go], [Shop.Behind]: transactions, and statements that wait for them.
//   - [Counter], [Tally]: calls of the base driver, and its open objects.
//   - [Proxy], [Relay], [Blackhole]: networks between a client and its server.
//   - [Server]: a separate PostgreSQL server, to crash, copy and promote; [MariaDB]: a MariaDB server to crash.
//   - [NewStore], [NewLeases]: the packages on top.
//
// The servers come from the environment; see [NeedPostgres] and [MySQLDSN]. Databases have random names, and in
// PostgreSQL each process has a separate database, so that packages can be tested concurrently on one server. Each
// package therefore has a TestMain that calls [Main].
package harness
