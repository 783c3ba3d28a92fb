// Package fenceotel reports to OpenTelemetry: metrics of guarded and refused writes and of leases, and each refusal as
// an event of the current span.
//
//	telemetry, err := fenceotel.New()
//	db, err := sqlfence.Open("pgx", dsn, telemetry.Writes(), sqlfence.WithTable("books"))
//	leases, err := lease.New(db, telemetry.Leases())
//	store, err := tokens.New(db, telemetry.Tokens())
//
// Attributes follow OpenTelemetry's stable conventions for databases (https://opentelemetry.io/docs/specs/semconv/db/):
// db.system.name, db.operation.name, db.collection.name, error.type. The outcomes are the kinds of [sqlfence.Event].
// The attributes have few values: tables, kinds of statements and resources. A token's name, such as "books/42", counts
// under its resource, "books", so the number of series doesn't grow with the number of rows.
//
//	sqlfence.writes                  counter: outcome guarded, refused, would refuse, bypassed, unfenced, raw access
//	sqlfence.write.duration          seconds, of guarded statements, from sending to the answer
//	sqlfence.token.used              last token seen of a resource, divided by sqlfence.MaxToken
//	sqlfence.token.issue.duration    seconds, of calls that issue tokens
//	sqlfence.token.issue.batch       calls that shared one statement to issue their tokens
//	sqlfence.lease.events            counter: acquired, contended, extended, released, lost
//	sqlfence.lease.wait.duration     seconds, from the call until the lease is granted
//
// The package makes no spans. Let a tracer such as otelsql wrap the driver of sqlfence: docs/telemetry.md has more.
package fenceotel
