package harness

import (
	"flag"
	"time"
)

// SerialSoak is set by a flag.
var SerialSoak = flag.Duration("serial-soak", time.Second, "how long the editors of TestSerialUnderLoad write, in each setting; if given, also those of TestORMSerialUnderLoad")

// How many editors compete for how many rows.
const (
	Editors    = 200
	EditedRows = 10
)
