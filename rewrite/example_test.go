package rewrite_test

import (
	"errors"
	"fmt"
	"log"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/rewrite"
)

// A statement is planned once, rendered for each execution, and sent with the guard's arguments after its own. If the
// guard raises an error, the text of the database's error contains the reason.
func Example() {
	r, err := rewrite.New(sqlfence.SQLite, []rewrite.Table{{Name: "books", FenceColumn: "fence_token"}})
	if err != nil {
		log.Fatal(err)
	}
	for _, query := range []string{
		"SELECT price FROM books WHERE id = ?",
		"UPDATE books SET price = ? WHERE id = ?",
		"REPLACE INTO books SELECT * FROM old",
	} {
		plan := r.Plan(query)
		fmt.Println(plan.Verdict)
		switch plan.Verdict {
		case "refuse":
			fmt.Println(" ", plan.Refusal.Reason)
		case "guard":
			values := rewrite.Values{Tables: []rewrite.TableValues{{Tokens: []rewrite.Token{{Name: "books", Value: 42}}}}}
			text, args, err := plan.Render(values)
			if err != nil {
				log.Fatal(err)
			}
			fmt.Println(" ", text)
			for _, arg := range args {
				fmt.Println("  argument", arg.Number, "is", arg.Value(&values))
			}
		}
	}
	answer := errors.New("bad JSON path: 'sqlfence:nonce:stale:0:43'") // from the database
	if m, ok := r.ReadMarker(answer, nil); ok && m.Kind == "stale" {
		fmt.Println("stale: the row has token", m.Current)
	}
	// Output:
	// pass
	// guard
	//   UPDATE OR ABORT books SET price = ?, `fence_token` = CASE WHEN abs(max(COALESCE(CAST(`books`.`fence_token` AS INTEGER), 0), -9223372036854775807)) <= ?2 THEN ?2 ELSE json_extract('{}', 'sqlfence:nonce:stale:0:' || `books`.`fence_token`) END WHERE id = ?
	//   argument 2 is 42
	// refuse
	//   which rows OR REPLACE deletes can't be told without a list of columns and VALUES; write INSERT ... ON CONFLICT
	// stale: the row has token 43
}

// Unfenced says that the writes to a table are not to be compared with a token. Missing
// values are an error, not a statement without its guard.
func ExamplePlan_Render() {
	r, err := rewrite.New(sqlfence.Postgres, []rewrite.Table{{Name: "books", FenceColumn: "fence_token"}})
	if err != nil {
		log.Fatal(err)
	}
	plan := r.Plan("UPDATE books SET price = $1")
	_, _, err = plan.Render(rewrite.Values{Tables: make([]rewrite.TableValues, 1)})
	fmt.Println(err)
	text, _, err := plan.Render(rewrite.Values{Tables: []rewrite.TableValues{{Unfenced: true}}})
	fmt.Println(text, err)
	// Output:
	// rewrite: table "books": no token, and Unfenced isn't set
	// UPDATE books SET price = $1 <nil>
}
