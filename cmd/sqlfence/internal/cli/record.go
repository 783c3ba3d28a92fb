package cli

import (
	"os"
	"os/user"
	"time"
)

// A record holds who made a manual change, when and why.
type record struct {
	At     string `json:"at"`
	By     string `json:"by"` // the user of this machine's system, and its name
	Reason string `json:"reason"`
}

func (a *app) record() record { return record{At: moment(time.Now()), By: whoami(), Reason: a.reason} }

func whoami() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	return name
}

// writeDone reports a manual change. With --json it writes answer, which contains a record of who made the change and
// why; otherwise it calls people, which writes text, and logs the record on standard error.
func (a *app) writeDone(answer any, done string, people func()) error {
	if !a.json {
		a.log.Info(done, "by", whoami(), "reason", a.reason)
	}
	return a.write(answer, people)
}
