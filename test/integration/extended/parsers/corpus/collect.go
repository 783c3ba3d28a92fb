package main

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// A statement is a distinct statement of the corpus, with its verdicts.
type statement struct {
	Database string             `json:"database"`
	Module   string             `json:"module"`
	File     string             `json:"file"`
	SQL      string             `json:"sql"`
	Verb     string             `json:"verb"`
	Known    string             `json:"key"` // how the key is known
	Verdicts map[string]verdict `json:"verdicts"`
}

// module adds the statements of a module.
func (s *summary) module(m module, dir string) error {
	files, err := readFiles(dir)
	if err != nil {
		return err
	}
	known := schemas(m, files)
	found := parseGo(m.path, files).texts()
	found = append(found, sqlTexts(files, queryNames(found))...)
	s.modules++
	for _, t := range found {
		for i, asked := range databasesOf(m, t.file, t.names...) {
			if asked {
				s.text(m, t, databases[i], known[i])
			}
		}
	}
	return nil
}

// schemas returns the tables that the module's files create, for each database.
func schemas(m module, files []file) (known [len(databases)]tables) {
	for i := range known {
		known[i] = tables{}
	}
	for _, own := range []bool{true, false} { // those of other databases where there are no own ones
		for _, f := range files {
			for i, asked := range databasesOf(m, f.name) {
				if asked == own {
					known[i].read(f.text, databases[i].oracle)
				}
			}
		}
	}
	return known
}

var (
	named   = regexp.MustCompile(`(?m)^\s*--\s*name\s*:\s*(\S+).*$`)
	sqlcArg = regexp.MustCompile(`sqlc\.(?:n?arg|slice)\(\s*'?(\w+)'?\s*\)`)
)

// queryNames returns the names that sqlc wrote into Go code with the statements.
func queryNames(found []text) map[string]bool {
	names := map[string]bool{}
	for _, t := range found {
		if m := named.FindStringSubmatch(t.sql); m != nil {
			names[m[1]] = true
		}
	}
	return names
}

// sqlTexts returns the statements of .sql files that programs send: files that name each statement in a comment, as for
// sqlc, and embedded files. Statements that Go code also contains are left out.
func sqlTexts(files []file, inGo map[string]bool) (found []text) {
	sent := embeds(files)
	for _, f := range files {
		heads := named.FindAllStringSubmatchIndex(f.text, -1)
		switch {
		case !strings.HasSuffix(f.name, ".sql"):
		case heads == nil:
			found = append(found, text{sql: f.text, file: f.name, loose: !sent[f.name]})
		}
		for i, head := range heads {
			end := len(f.text)
			if i+1 < len(heads) {
				end = heads[i+1][0]
			}
			if inGo[f.text[head[2]:head[3]]] {
				continue
			}
			part := sqlcArg.ReplaceAllString(f.text[head[1]:end], ":$1")
			found = append(found, text{sql: part, file: f.name})
		}
	}
	return found
}

var embed = regexp.MustCompile(`(?m)^\s*//go:embed\s+(\S+\.sql)\s+(?:var\s+)?\w+\s+string\b`)

// embeds returns the names of the .sql files that are the value of a string.
func embeds(files []file) map[string]bool {
	names := map[string]bool{}
	for _, f := range files {
		for _, m := range embed.FindAllStringSubmatch(f.text, -1) {
			names[path.Join(path.Dir(f.name), m[1])] = true
		}
	}
	return names
}

// text adds the statements of a text for one database.
func (s *summary) text(m module, t text, db database, known tables) {
	if why := t.isLeft(); why != "" {
		s.leave(why, looksLikeWrite(t.sql))
		return
	}
	sql := t.sql
	if _, valid := db.oracle.read(db.oracle.accept(sql)); !valid && strings.Contains(sql, "%") {
		sql = (&folder{}).format(sql, nil) // a format that something else than Sprintf fills
	}
	sql, unknown := fill(sql)
	if sql == "" {
		if s.leave("a gap that can be anything", looksLikeWrite(t.sql)) {
			s.gaps[strings.ToLower(unknown)]++
		}
		return
	}
	s.valid(m, t, db.oracle.accept(sql), db, known)
}

// isLeft says why a text isn't counted, or "".
func (t text) isLeft() string {
	switch {
	case isTest(t.file), slices.ContainsFunc(t.names, isTest):
		return "in what is there for tests"
	case isMigration(t.file), slices.ContainsFunc(t.names, isMigration):
		return "in migrations and schemas"
	case t.loose:
		return "in a .sql file that isn't queries by name"
	case t.built:
		return "the program appends to it"
	}
	return ""
}

// valid adds a text if the database's parser accepts it as a write.
func (s *summary) valid(m module, t text, sql string, db database, known tables) {
	r, ok := db.oracle.read(sql)
	switch {
	case !ok:
		s.leave("not valid for "+db.name, looksLikeWrite(sql))
		return
	case r.defines:
		s.leave("with DDL in the same text", len(r.writes) > 0)
		return
	case len(r.writes) == 0:
		s.leave("TRUNCATE or COPY, of "+db.name, len(r.whole) > 0)
		return
	case isPhrase(sql, known):
		s.leave("words rather than SQL", true)
		return
	}
	s.accepted[db.name]++
	key := db.name + "\n" + normal(sql)
	if s.seen[key] {
		return
	}
	s.seen[key] = true
	st := statement{db.name, m.path, t.file, sql, r.writes[0].verb, "", map[string]verdict{}}
	if r.statements > 1 {
		st.Verb = "several statements"
	} else if len(r.writes) > 1 {
		st.Verb = "several writes"
	}
	_, st.Known = known.keyOf(r.writes[0].table)
	for _, how := range rulings {
		if v, asked := judge(db.oracle, sql, r, known, how); asked {
			st.Verdicts[how.name] = v
		}
	}
	s.statements = append(s.statements, st)
}

// leave counts an omitted text if counts is set.
func (s *summary) leave(why string, counts bool) bool {
	if counts {
		s.left[why]++
	}
	return counts
}

var (
	writes = regexp.MustCompile(`(?is)\b(insert\s+(or\s+\w+\s+)?into|delete\s+from|replace\s+into|merge\s+into|update\b.*\bset)\b`)
	phrase = regexp.MustCompile(`(?i)^\s*delete\s+from\s+(\w+)\s*$`)
)

func looksLikeWrite(sql string) bool { return writes.MatchString(sql) }

// isPhrase holds for "delete from cache" where there is no such table: it may be a label.
func isPhrase(sql string, known tables) bool {
	m := phrase.FindStringSubmatch(sql)
	return m != nil && !strings.Contains(sql, "DELETE") && known[strings.ToLower(m[1])] == nil
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
