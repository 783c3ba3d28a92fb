// Package storm drives fences under test against a database, with faults, and records what they were
// asked and have answered. It runs on Linux.
package storm
