package lease_test

import (
	"fmt"

	"github.com/sqlfence/sqlfence/lease"
)

func ExampleNormalizeKey() {
	key, err := lease.NormalizeKey("cafe\u0301") // an e and an accent
	fmt.Printf("%q %v\n", key, err)
	_, err = lease.NormalizeKey("")
	fmt.Println(err)
	// Output:
	// "café" <nil>
	// lease: invalid argument: the key is empty
}
