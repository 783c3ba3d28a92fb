package tokens

import (
	"strconv"

	"github.com/sqlfence/sqlfence"
	pg "github.com/sqlfence/sqlfence/internal/dialect/postgres"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// alike are the pieces of a statement that a procedure sends: there the level is always READ COMMITTED.
var alike = sqltext.Pieces{"seen": sqltext.Func(func(string) string { return "true" })}

// runsOut warns of tokens as [Store] does.
var runsOut = `
	IF token >= ` + strconv.Itoa(sqlfence.WarnToken) + ` THEN
		RAISE WARNING 'sqlfence: fencing tokens of %% are running out: %%, the highest is ` +
	strconv.Itoa(sqlfence.MaxToken) + `', quote_literal(name), token;
	END IF;`

func proceduresPostgres() []pg.Procedure {
	render := func(text string, more ...sqltext.Pieces) string {
		text, _ = sqltext.Render(pg.Text, text, append(more, alike, pieces)...)
		return text
	}
	return []pg.Procedure{
		{Name: "sqlfence_issue", Params: "IN name text, INOUT token bigint DEFAULT NULL::bigint", Body: `
BEGIN` + pg.Enter + pg.NameIsFit("name") + `
	` + pg.Sends(render(issuePostgres, onePostgres("$1::text", "$2::bigint")), "token", "name, 1::bigint") + `
	IF token IS NULL THEN
		RAISE EXCEPTION 'sqlfence: there is no token left for %%, or its row in fencing_tokens is negative', ` +
			`quote_literal(name)
			USING ERRCODE = 'sequence_generator_limit_exceeded';
	END IF;` + runsOut + `
	COMMIT;
END
`},
		{Name: "sqlfence_adopt", Params: "IN name text, IN token bigint", Body: `
DECLARE
	newest bigint;
BEGIN` + pg.Enter + pg.NameIsFit("name") + `
	IF (token BETWEEN 1 AND ` + strconv.Itoa(sqlfence.MaxToken) + `) IS NOT TRUE THEN
		RAISE EXCEPTION 'sqlfence: a token is a number from 1 to ` + strconv.Itoa(sqlfence.MaxToken) + `'
			USING ERRCODE = 'invalid_parameter_value';
	END IF;
	` + pg.Sends(render(adoptPostgres), "newest", "name, token") + `
	IF newest IS NULL THEN
		` + pg.Sends(render("SELECT {served}"), "newest", "name") + `
		RAISE EXCEPTION 'sqlfence: stale token %% for %%: its first token has to be above the floor %%', token, ` +
			`quote_literal(name), newest
			USING ERRCODE = 'FT002';
	END IF;
	IF newest > token THEN
		RAISE EXCEPTION 'sqlfence: stale token %% for %%, which has %%', token, quote_literal(name), newest
			USING ERRCODE = 'FT002';
	END IF;` + runsOut + `
	COMMIT;
END
`},
	}
}
