// Package bench measures sqlfence beside what one would do without it, in one
// run: sub-benchmarks differ in impl=, so that benchstat -col /impl compares
// them. PostgreSQL is measured where SQLFENCE_POSTGRES_DSN names a server;
// `make bench` starts one.
package bench
