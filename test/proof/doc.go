// Package proof has no code of its own: its tests try to break fences, sqlfence's first, and write docs/data/proof.md.
// Packages, from a request to a verdict:
//
//   - fence: what a fence under test reads and writes, and its process;
//   - ours, others: sqlfence as such a program; controls, and fences as people write them;
//   - storm: what is asked, and what breaks meanwhile; the databases;
//   - history: the record that triggers keep in the database, beside what was told;
//   - judge: which promises a history breaks; violations to plant into one;
//   - report: the runs, and the page about them.
package proof
