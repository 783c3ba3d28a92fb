// Package basedriver is the one room for other people's drivers. sqlfence imports none of them, so
// what it knows of one stands here, as facts, as reflection over its types, and in one place as
// unsafe. No other package of the root module uses either. It knows nothing of fences.
//
// What each piece buys:
//
//   - known.go: an application names no dialect for the six drivers that are known, nor behind
//     a wrapper of them; and the facts that save a round trip or a wrong error.
//   - call.go: a driver with the interfaces of Go 1.0 works as it does with database/sql.
//   - argument.go: the key of a row and the name of an editor are known before the statement is
//     sent, whichever type the application's argument has.
//   - errors.go: errors of a database have a code, whichever field or method has it.
//   - liveness.go, network.go and the socket files: a connection that the server has closed is
//     found before a guarded write is sent on it, without a round trip. Otherwise the first write
//     of each pooled connection after a restart of the server would be an unknown outcome.
//     lib/pq has its network connection in a field only: that is the one use of unsafe.
//   - pgx.go: a query rewriter of pgx's, such as NamedArgs, is run before the statement is
//     planned, so that the text that pgx would send is the one that is guarded.
//   - prepared.go: a text that pgx would run as the name of a prepared statement is planned as that
//     statement. pgx keeps them in a field only, as it does what commits a batch's transaction (pgx.go).
//   - notification.go: a waiter for a lease listens on a connection of the pool, without code of the
//     application for its driver.
//   - scanner_go1.27.go: rows that scan their own columns still do behind a guard.
package basedriver
