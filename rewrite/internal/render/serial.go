package render

import (
	"github.com/sqlfence/sqlfence/internal/guard"
)

type serial struct{}

func (serial) refuses(w *writer) bool { return w.Plan.Versioned }

func (serial) check(w *writer) {
	w.write("CASE")
	if w.isNoInteger(" WHEN ", " THEN ") {
		w.throwNoInteger()
		w.write(" IS NOT NULL")
	}
	w.write(" WHEN ")
	numbers{w}.atSerial()
	w.write(" THEN ")
	w.bool(true)
	w.write(" ELSE ")
	w.throwAfterLedger(guard.Conflict, w.rules.Quoted.Serial, "COALESCE(", w.target.Qualifier, ".",
		w.rules.Quoted.Serial, ", 0)")
	w.write(" IS NOT NULL END")
}

// assigns writes the assignment of the next serial.
func (serial) assigns(w *writer) {
	w.writeAssigned(", ", w.rules.Quoted.Serial)
	switch {
	case numbers{w}.lacksSerial():
		numbers{w}.throwNumber(guard.Required)
		return
	case !serial{}.refuses(w) || w.Dialect.Guard.SetsInOrder.Is():
		numbers{w}.increment()
		return
	}
	w.write("CASE WHEN ")
	w.isNoInteger("", " OR ") // for such a number the increment throws an error
	numbers{w}.atSerial()
	w.write(" THEN ")
	numbers{w}.increment()
	w.write(" ELSE ")
	numbers{w}.throwNumber(guard.Conflict)
	w.write(" END")
}

func (w numbers) atSerial() {
	w.storedNumber()
	w.operator("=")
	w.callersSerial()
}

// callersSerial writes the serial that the caller read.
func (w numbers) callersSerial() { w.field(0, fieldSerial) }

// gone writes a RETURNING clause that throws an error if the row was missing, so that the upsert has inserted it: an
// inserted row has serial 1, an updated row the caller's serial plus 1.
func (w numbers) gone() {
	if !(serial{}).refuses(w.writer) {
		return
	}
	w.write(" RETURNING CASE WHEN ", w.target.Qualifier, ".", w.rules.Quoted.Serial)
	w.operator("-")
	w.write("1")
	w.operator("=")
	w.callersSerial()
	w.write(" THEN 1 ELSE ")
	w.throwAfterLedger(guard.Gone, w.rules.Quoted.Serial, "COALESCE(", w.target.Qualifier, ".",
		w.rules.Quoted.Serial, ", 0)")
	w.write(" END")
}
