package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"
)

// How a Redis keeps what it was told.
const (
	redisNo          = "no"       // in memory only
	redisEverySecond = "everysec" // a crash loses up to a second or two
	redisAlways      = "always"   // on disk before the answer
)

var redisDurability = map[string]string{
	redisNo:          "none: appendonly no",
	redisEverySecond: "a second late: appendfsync everysec",
	redisAlways:      "appendfsync always",
}

func redisName(durability string) string { return "Redis (" + redisDurability[durability] + ")" }

func redisStarter(durability string) func(context.Context, *servers) (*process, error) {
	return func(ctx context.Context, s *servers) (*process, error) {
		program, err := exec.LookPath("redis-server")
		if err != nil {
			return nil, fmt.Errorf("%w; Debian's package is redis-server", err)
		}
		folder := filepath.Join(s.Folder, "redis-"+durability)
		if err := os.Mkdir(folder, 0o700); err != nil {
			return nil, err
		}
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		args := []string{"--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", folder, "--save", "", "--daemonize", "no"}
		if durability == redisNo {
			args = append(args, "--appendonly", "no")
		} else {
			args = append(args, "--appendonly", "yes", "--appendfsync", durability)
		}
		cmd := exec.Command(program, args...)
		cmd.Dir = folder
		detach(cmd)
		p, err := startProcess(cmd, syscall.SIGTERM)
		if err != nil {
			return nil, err
		}
		at, err := s.endpointAt(port, func(address string) string { return address })
		if err != nil {
			return p, err
		}
		if err := p.ready(ctx, func(ctx context.Context) error { return s.askRedis(ctx, at.Near, durability) }); err != nil {
			return p, err
		}
		s.Redis[durability] = at
		return p, nil
	}
}

func (s *servers) askRedis(ctx context.Context, address, durability string) error {
	client := redis.NewClient(&redis.Options{Addr: address, ReadTimeout: stillness})
	defer client.Close()
	info, err := client.Info(ctx, "server").Result()
	if err != nil {
		return err
	}
	if _, version, ok := strings.Cut(info, "redis_version:"); ok && durability == redisAlways {
		s.Versions = append(s.Versions, "Redis "+strings.Fields(version)[0])
	}
	return nil
}
