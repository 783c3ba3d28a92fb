package mysql

import (
	"slices"

	"github.com/sqlfence/sqlfence/internal/fact"
	"github.com/sqlfence/sqlfence/internal/sql/lex"
)

// Grammar is the grammar of MySQL 8 and 9 and of MariaDB 10.11 and 11, sql/sql_yacc.yy of both. Syntax of only one
// database is parsed as in that database, because the other refuses the statement.
//
// A word that only one database reserves (RETURNING, OFFSET, WINDOW, EXCEPT, INTERSECT) is a name where an operand
// must follow, and a keyword elsewhere. Neither database reserves END and ESCAPE.
//
// A MariaDB block contains semicolons. So an unknown statement extends to the end of the string.
var Grammar = &lex.Grammar{
	Lex:    Lex,
	Blocks: fact.Yes,

	Explain:        fact.No,
	InBrackets:     fact.Yes,
	Merge:          fact.No,
	Code:           fact.No,
	CreatesFrom:    fact.No,
	SearchAndCycle: fact.No,
	NoRows: []string{"commit", "rollback", "savepoint", "release", "start", "xa",
		"use", "show", "help", "do", "handler",
		"optimize", "check", "checksum", "repair", "cache", "flush", "reset", "kill", "lock", "unlock",
		"grant", "revoke", "deallocate", "purge", "change", "stop", "install", "uninstall"},

	Only:         fact.No,
	BareAlias:    fact.No,
	OrClause:     fact.No,
	IndexedBy:    fact.No,
	Limits:       fact.No,
	RowKeyword:   fact.No,
	DoubleEquals: fact.No,
	QualifiedSet: fact.Yes,
	OnDuplicate:  fact.Yes,
	AfterColumns: slices.Concat(lex.CommonEnds, []string{"offset", "fetch", "for", "into", "lock", "procedure"}),

	NameWords:      []string{"except", "intersect", "offset", "returning"},
	ArrowMayFail:   fact.Yes,
	MathMayFail:    fact.Yes,
	TypedConstants: fact.No,
	KeepingTypes:   []string{"char"},
}
