// Package servers tests sqlfence on servers that only imitate the protocol of a known database. The package is a
// separate module, because such a server has many dependencies. test/integration/promises/guarantees tests the refusal
// of servers by name, on the known databases.
package servers
