package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// postgresDurability is how the server runs, on a folder of the temporary folder.
const postgresDurability = "fsync, synchronous_commit on"

// A checkpoint in the middle of a slice would be somebody's bad luck, so there are few.
const postgresConf = `
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
max_connections = 1500
shared_buffers = 256MB
fsync = on
synchronous_commit = on
max_wal_size = 8GB
checkpoint_timeout = 1h
`

func startPostgres(ctx context.Context, s *servers) (*process, error) {
	bin, err := postgresPrograms()
	if err != nil {
		return nil, err
	}
	owner, err := postgresOwner()
	if err != nil {
		return nil, err
	}
	folder := filepath.Join(s.Folder, "postgres")
	command := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(bin, name), args...)
		cmd.Dir = folder
		detach(cmd)
		cmd.SysProcAttr.Credential = owner
		return cmd
	}
	password := rand.Text()
	if err := ownFolder(folder, password, owner); err != nil {
		return nil, err
	}
	data := filepath.Join(folder, "data")
	if out, err := command("initdb", "-D", data, "-U", "sqlfence", "--pwfile="+filepath.Join(folder, "password"),
		"--auth=password", "--encoding=UTF8", "--locale=C").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	conf, err := os.OpenFile(filepath.Join(data, "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	_, err = conf.WriteString(postgresConf)
	if err := errors.Join(err, conf.Close()); err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	p, err := startProcess(command("postgres", "-D", data, "-p", strconv.Itoa(port)), syscall.SIGINT)
	if err != nil {
		return nil, err
	}
	at, err := s.endpointAt(port, func(address string) string {
		return fmt.Sprintf("postgres://sqlfence:%s@%s/postgres?sslmode=disable", password, address)
	})
	if err != nil {
		return p, err
	}
	if err := p.ready(ctx, func(ctx context.Context) error { return s.askPostgres(ctx, at.Near) }); err != nil {
		return p, err
	}
	s.Database, s.DatabaseProcess = at, p.cmd.Process.Pid
	return p, nil
}

func (s *servers) askPostgres(ctx context.Context, dsn string) error {
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	var version string
	if err := db.QueryRowContext(ctx, "SHOW server_version").Scan(&version); err != nil {
		return err
	}
	s.Versions = append(s.Versions, "PostgreSQL "+version+" ("+postgresDurability+")")
	return nil
}

// postgresPrograms returns the folder of PostgreSQL's programs: from PATH, or the newest
// of those that Debian keeps off it.
func postgresPrograms() (string, error) {
	candidates, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	slices.Sort(candidates)
	slices.Reverse(candidates)
	if path, err := exec.LookPath("initdb"); err == nil {
		candidates = append([]string{path}, candidates...)
	}
	for _, path := range candidates {
		if _, err := os.Stat(filepath.Join(filepath.Dir(path), "postgres")); err == nil {
			return filepath.Dir(path), nil
		}
	}
	return "", errors.New("there is no initdb with a postgres beside it on PATH; Debian's package is postgresql")
}

// postgresOwner is who runs the server, which refuses to run as root; nil is who runs this.
func postgresOwner() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
		if uidErr == nil && gidErr == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
		}
	}
	return nil, errors.New("PostgreSQL doesn't run as root, and there is no user postgres or nobody")
}

// ownFolder creates the server's folder and a file with the password.
func ownFolder(folder, password string, owner *syscall.Credential) error {
	file := filepath.Join(folder, "password")
	if err := errors.Join(os.Mkdir(folder, 0o700), os.WriteFile(file, []byte(password), 0o600)); err != nil {
		return err
	}
	if owner == nil {
		return nil
	}
	return errors.Join(os.Chown(folder, int(owner.Uid), int(owner.Gid)), os.Chown(file, int(owner.Uid), int(owner.Gid)))
}
