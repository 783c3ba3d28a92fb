package lease

import (
	"strconv"

	"github.com/sqlfence/sqlfence"
	pg "github.com/sqlfence/sqlfence/internal/dialect/postgres"
	"github.com/sqlfence/sqlfence/internal/sqltext"
)

// overtakenAlike is what overtaken is in a procedure: its text is the same in each process.
const overtakenAlike = "sqlfence:overtaken:"

// alike are the pieces of a statement that a procedure sends: there the level is always READ COMMITTED.
var alike = sqltext.Pieces{
	"seen":      sqltext.Func(func(string) string { return "true" }),
	"overtaken": sqltext.Func(func(token string) string { return pg.Text.Raise("'"+overtakenAlike+"'", token) }),
}

// newLockIDPostgres is what newLockID returns, but for 6 bits of a UUID that aren't random.
const newLockIDPostgres = `pg_catalog.translate(pg_catalog.rtrim(pg_catalog.encode(
		pg_catalog.uuid_send(pg_catalog.gen_random_uuid()), 'base64'), '='), '+/', '-_')`

const checkTTLPostgres = `
	IF (seconds BETWEEN 0.001 AND 86400) IS NOT TRUE THEN
		RAISE EXCEPTION 'sqlfence: a lease lives for 0.001 to 86400 seconds, not %%', seconds
			USING ERRCODE = 'invalid_parameter_value';
	END IF;`

const ticksPostgres = "ceil(seconds * 1000000)::bigint"

// lostPostgres is checked where a statement has found no live lease.
func lostPostgres(missing string) string {
	return `
	IF ` + missing + ` IS NULL THEN
		RAISE EXCEPTION 'sqlfence: stale lease %%: it has ended', quote_literal(lock_id) USING ERRCODE = 'FT002';
	END IF;`
}

// lastButOne is the highest token that has a next one.
var lastButOne = strconv.Itoa(sqlfence.MaxToken - 1)

// proceduresPostgres are thin: the waits, locks and comparisons are those of the statements. One that was overtaken is
// sent again, with a newer snapshot; so is one that waited while another took the lease, as it can't say who.
func proceduresPostgres() []pg.Procedure {
	render := func(text string, more ...sqltext.Pieces) string {
		text, _ = sqltext.Render(pg.Text, text, append(more, alike, postgresPieces, pieces)...)
		return text
	}
	return []pg.Procedure{
		{Name: "sqlfence_lease_acquire",
			Params: "IN key text, IN owner text, IN seconds double precision, INOUT lock_id text DEFAULT NULL::text, " +
				"INOUT token bigint DEFAULT NULL::bigint, " +
				"INOUT expires_at timestamp with time zone DEFAULT NULL::timestamp with time zone, " +
				"INOUT holder text DEFAULT NULL::text",
			Body: `
DECLARE
	own text := ` + newLockIDPostgres + `;
	live boolean;
	newest bigint;
	until bigint;
	ends bigint;
	skipped text;
BEGIN` + pg.Enter + pg.NameIsFit("key") + checkTTLPostgres + `
	owner := COALESCE(owner, '');
	IF octet_length(convert_to(owner, 'UTF8')) > 512 THEN
		RAISE EXCEPTION 'sqlfence: an owner''s name has at most 512 bytes' USING ERRCODE = 'invalid_parameter_value';
	END IF;
	LOOP
		BEGIN
			` + pg.Sends(render(takePostgres, askingPieces),
				"live, skipped, skipped, newest, holder, until, skipped, skipped, lock_id, skipped, token, "+
					"skipped, ends, skipped, skipped", "key, own, owner, "+ticksPostgres+", NULL::bigint, false") + `
			EXIT WHEN lock_id IS NOT NULL OR live OR (newest BETWEEN 0 AND ` + lastButOne + `) IS NOT TRUE;
		EXCEPTION WHEN invalid_text_representation THEN
			IF strpos(SQLERRM, '` + overtakenAlike + `') = 0 THEN
				RAISE;
			END IF;
		END;
	END LOOP;
	IF lock_id IS NULL AND NOT live THEN
		RAISE EXCEPTION 'sqlfence: there is no token left for %%, or its row in fencing_tokens is negative: %%', ` +
				`quote_literal(key), newest
			USING ERRCODE = 'sequence_generator_limit_exceeded';
	END IF;
	IF lock_id IS NOT NULL THEN
		holder := owner;
		until := ends;
	END IF;
	IF token >= ` + strconv.Itoa(sqlfence.WarnToken) + ` THEN
		RAISE WARNING 'sqlfence: fencing tokens of %% are running out: %%', quote_literal(key), token;
	END IF;
	expires_at := timestamptz 'epoch' + until * interval '1 microsecond';
	COMMIT;
END
`},
		{Name: "sqlfence_lease_extend",
			Params: "IN lock_id text, IN seconds double precision, " +
				"INOUT expires_at timestamp with time zone DEFAULT NULL::timestamp with time zone",
			Body: `
DECLARE
	ends bigint;
	skipped text;
BEGIN` + pg.Enter + checkTTLPostgres + `
	` + pg.Sends(render(extendPostgres), "ends, skipped", "lock_id, "+ticksPostgres) +
				lostPostgres("ends") + `
	expires_at := timestamptz 'epoch' + ends * interval '1 microsecond';
	COMMIT;
END
`},
		{Name: "sqlfence_lease_release", Params: "IN lock_id text", Body: `
DECLARE
	release text := ` + newLockIDPostgres + `;
	key text;
	skipped text;
BEGIN` + pg.Enter + `
	` + pg.Sends(render(releasePostgres+notifying), "key, skipped", "lock_id, release") + lostPostgres("key") + `
	COMMIT;
END
`},
	}
}

var (
	createProceduresPostgres = pg.CreateProcedures(proceduresPostgres()...)
	findProceduresPostgres   = pg.FindProcedures(proceduresPostgres()...)
)
