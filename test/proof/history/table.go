package history

import "strconv"

// A Table describes a table that a storm writes to, and the table's promises. Its columns are id, value and, if it
// isn't empty, Mark.
type Table struct {
	Name string
	Mark string // the column of the mark, the generation or the version
	Rows int64  // there from the beginning, numbered from 1

	Fence   bool   // no write has a token below the mark, and the mark is the token (G1)
	Single  bool   // nor the same
	Ledger  bool   // a write has the newest token of its name (G2)
	Held    bool   // it isn't registered: transactions that write to it call Hold with its token
	Keyed   bool   // each row has a name of its own
	Claim   bool   // a write presents the row's generation, or raises it
	ClaimOf string // a write presents the generation of the row of the same number there
	Serial  bool   // each write raises the version by 1
	Edited  bool   // a row that a user has locked is written by no other
	Sealed  bool   // the database refuses what doesn't prove its token
	Leased  bool   // tokens come with leases, else they are issued
	Foreign bool   // tokens are adopted
	Strange bool   // the fence isn't sqlfence: which column has its token, if any, isn't known
	Deletes bool   // rows are deleted and come again
}

// Resource returns the token's name for a row.
func (t *Table) Resource(row int64) string {
	switch {
	case t.ClaimOf != "":
		return t.ClaimOf + "/" + strconv.FormatInt(row, 10)
	case t.Keyed || t.Claim:
		return t.Name + "/" + strconv.FormatInt(row, 10)
	}
	return t.Name
}

// NeedsToken reports whether a write presents one.
func (t *Table) NeedsToken() bool { return t.Fence || t.Ledger || t.Claim || t.ClaimOf != "" }

// All are the tables of a storm on sqlfence, each for a rule or two.
var All = []Table{
	{Name: "marked", Mark: "fence", Rows: 6, Fence: true},
	{Name: "single", Mark: "fence", Rows: 4, Fence: true, Single: true},
	{Name: "ledgered", Rows: 6, Ledger: true},
	{Name: "held", Rows: 6, Ledger: true, Held: true},
	{Name: "owned", Rows: 24, Ledger: true, Held: true, Keyed: true},
	{Name: "leased", Mark: "fence", Rows: 24, Fence: true, Ledger: true, Keyed: true, Leased: true},
	{Name: "adopted", Mark: "fence", Rows: 8, Fence: true, Ledger: true, Keyed: true, Foreign: true},
	{Name: "removed", Mark: "fence", Rows: 6, Fence: true, Ledger: true, Deletes: true},
	{Name: "claimed", Mark: "generation", Rows: 8, Claim: true},
	{Name: "results", Rows: 8, ClaimOf: "claimed"},
	{Name: "versions", Mark: "version", Rows: 8, Serial: true},
	{Name: "edited", Mark: "serial", Rows: 8, Serial: true, Edited: true},
	{Name: "sealed", Mark: "fence", Rows: 6, Fence: true, Ledger: true, Sealed: true},
}

// Fenced is the table of fences that aren't sqlfence. With a ledger, they promise that only the newest token writes.
func Fenced(ledger bool) []Table {
	return []Table{{Name: "fenced", Rows: 8, Fence: true, Ledger: ledger, Keyed: true, Leased: true, Strange: true}}
}

// Find returns the table of a name.
func Find(tables []Table, name string) *Table {
	for i := range tables {
		if tables[i].Name == name {
			return &tables[i]
		}
	}
	return nil
}

// Bulk is the form of a statement that writes the first rows of a table, up to Rows.
const Bulk = "bulk"

// For returns the tables of a database that can seal, or can't, and that compares with a ledger, or can't. Without one,
// what is left of a table's rules compares marks; a row that comes again has none, so none is deleted.
func For(seals, ledgers bool) (tables []Table) {
	for _, t := range All {
		marks := t.Mark != "" && !t.Deletes
		if !seals && t.Sealed || !ledgers && !marks {
			continue
		}
		t.Ledger = t.Ledger && ledgers
		tables = append(tables, t)
	}
	return tables
}
