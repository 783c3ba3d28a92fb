package harness

import (
	"flag"
	"time"
)

var SerialSoak = flag.Duration("serial-soak", time.Second, "how long the editors of TestSerialUnderLoad write, in each setting; if given, also those of TestORMSerialUnderLoad")

const (
	Editors    = 200
	EditedRows = 10
)
