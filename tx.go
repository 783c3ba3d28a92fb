package sqlfence

import (
	"github.com/sqlfence/sqlfence/internal/basedriver"
	"github.com/sqlfence/sqlfence/rewrite"
)

// followTx follows transactions that are begun and ended by statements: by one
// that ended with err. In doubt a transaction is taken for open: the next savepoint
// shows whether it is.
func (s *connState) followTx(query string, err error) {
	switch {
	case basedriver.IsSkip(err) || !s.followsTx(): // a skipped one comes again, prepared
	case err == nil:
		s.inTx = rewrite.InTransaction(s.settings.profile.dialect(), query, s.inTx)
	default: // how far it got isn't known
		s.inTx = s.inTx || s.changesTx(query)
	}
}

// followsTx reports whether transactions that statements begin and end have to be
// followed: Observe mode sets savepoints in them.
func (s *connState) followsTx() bool {
	return s.settings.observes() && s.settings.profile.errorEndsTx()
}

// changesTx reports whether the statement begins or ends transactions that have to be
// followed.
func (s *connState) changesTx(query string) bool {
	if !s.followsTx() {
		return false
	}
	d := s.settings.profile.dialect()
	return rewrite.InTransaction(d, query, false) || !rewrite.InTransaction(d, query, true)
}
