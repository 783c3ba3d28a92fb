package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
)

func main() {
	log.SetFlags(0)
	list := flag.String("modules", "modules.txt", "the `file` that lists the modules")
	out := flag.String("out", "", "the `folder` for the report")
	cache := flag.String("cache", filepath.Join(os.TempDir(), "sqlfence-corpus"), "the `folder` that modules are downloaded to")
	checkouts := flag.String("checkouts", "", "a `folder` with modules, each in path@version, that need no download")
	flag.Parse()
	if *out == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(*list, *out, source{*cache, *checkouts}); err != nil {
		log.Fatal("corpus: ", err)
	}
}

func run(list, out string, from source) error {
	modules, err := readModules(list)
	if err != nil {
		return err
	}
	sum := newSummary()
	for _, m := range modules {
		dir, err := from.dir(m)
		if err != nil {
			log.Printf("%s: %v", m.path, err)
			sum.missing = append(sum.missing, m.path)
			continue
		}
		if err := sum.module(m, dir); err != nil {
			return fmt.Errorf("%s: %w", m.path, err)
		}
	}
	return sum.write(out)
}
