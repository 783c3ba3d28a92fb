// Package servers tests sqlfence on servers that speak the protocol of a known database, and aren't it. It is
// a module of its own, as such a server requires very much. That servers are refused by their names is tested
// in test/integration/promises/guarantees, on the databases themselves.
package servers
