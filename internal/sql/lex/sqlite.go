package lex

import (
	lite "github.com/sqlfence/sqlfence/internal/dialect/sqlite"
)

// SQLite is how SQLite reads.
//
// Source: SQLite's src/tokenize.c.
var SQLite = newRules(Rules{
	lineEnds:      "\n",
	openComments:  true,
	byteOrderMark: true,

	rawStrings: "x",

	backquotes:     true,
	brackets:       true,
	textNames:      true,
	noBlankInWords: true,
	quote:          lite.Text.Quote,

	variables: true,
})
