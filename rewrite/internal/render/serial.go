package render

import (
	"github.com/sqlfence/sqlfence/internal/guard"
)

type serialText struct{}

func (serialText) refuses(w *writer) bool { return w.comparesSerial() }

func (serialText) check(w *writer) {
	w.write("CASE")
	if w.isNoInteger(" WHEN ", " THEN ") {
		w.raiseNoInteger()
		w.write(" IS NOT NULL")
	}
	w.write(" WHEN ")
	w.atSerial()
	w.write(" THEN ")
	w.bool(true)
	w.write(" ELSE ")
	w.raiseAfterLedger(guard.Conflict, w.rules.Quoted.Serial, "COALESCE(", w.target.Qualifier, ".",
		w.rules.Quoted.Serial, ", 0)")
	w.write(" IS NOT NULL END")
}

// assigns writes the assignment of the next serial.
func (serialText) assigns(w *writer) {
	w.writeAssigned(", ", w.rules.Quoted.Serial)
	switch {
	case w.lacksSerial():
		w.raiseNumber(guard.Required)
		return
	case !w.comparesSerial() || w.Dialect.Guard.SetsInOrder.Is():
		w.increment()
		return
	}
	w.write("CASE WHEN ")
	w.isNoInteger("", " OR ") // then the increment raises
	w.atSerial()
	w.write(" THEN ")
	w.increment()
	w.write(" ELSE ")
	w.raiseNumber(guard.Conflict)
	w.write(" END")
}

// comparesSerial reports whether rows of the table are compared with the serial.
func (w *writer) comparesSerial() bool {
	return w.Plan.Versioned && w.rules.Serial != ""
}

// lacksSerial reports whether the update of an upsert raises for want of a serial.
func (w *writer) lacksSerial() bool {
	return w.rules.SerialRequired && !w.target.Changes && !w.Plan.Versioned
}

func (w *writer) atSerial() {
	w.storedNumber()
	w.operator("=")
	w.callersSerial()
}

// callersSerial writes the serial that the caller read.
func (w *writer) callersSerial() { w.field(0, fieldSerial) }

// gone writes the RETURNING that raises for a row which wasn't there. A row that
// was inserted is at 1, one that was updated at the caller's serial and 1.
func (w *writer) gone() {
	if !w.comparesSerial() {
		return
	}
	w.write(" RETURNING CASE WHEN ", w.target.Qualifier, ".", w.rules.Quoted.Serial)
	w.operator("-")
	w.write("1")
	w.operator("=")
	w.callersSerial()
	w.write(" THEN 1 ELSE ")
	w.raiseAfterLedger(guard.Gone, w.rules.Quoted.Serial, "COALESCE(", w.target.Qualifier, ".",
		w.rules.Quoted.Serial, ", 0)")
	w.write(" END")
}
