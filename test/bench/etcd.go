package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/etcd/api/v3/version"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// etcdArg makes the program an etcd server, so that its work isn't counted as a client's.
const etcdArg = "-etcd"

// etcdDurability: etcd has the entry of each change on disk before it answers.
const etcdDurability = "fsync, one member"

func startEtcd(ctx context.Context, s *servers) (*process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	client, err := freePort()
	if err != nil {
		return nil, err
	}
	peer, err := freePort()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, etcdArg, fmt.Sprintf("%s,%d,%d", filepath.Join(s.Folder, "etcd"), client, peer))
	detach(cmd)
	p, err := startProcess(cmd, syscall.SIGTERM)
	if err != nil {
		return nil, err
	}
	at, err := s.endpointAt(client, func(address string) string { return address })
	if err != nil {
		return p, err
	}
	if err := p.ready(ctx, func(ctx context.Context) error { return askEtcd(ctx, at.Near) }); err != nil {
		return p, err
	}
	s.Etcd = at
	s.Versions = append(s.Versions, "etcd "+version.Version+" (embedded, in a process of its own)")
	return p, nil
}

func askEtcd(ctx context.Context, address string) error {
	client, err := etcdClient(address)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second) // and again
	defer cancel()
	_, err = client.Get(ctx, "ready")
	return err
}

func etcdClient(address string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: []string{address}, DialTimeout: stillness, Logger: zap.NewNop()})
}

// runEtcd is the server. An error goes to the standard output.
func runEtcd(where string) {
	if err := serveEtcd(where); err != nil {
		fmt.Println("etcd:", err)
		os.Exit(1)
	}
}

func serveEtcd(where string) error {
	parts := strings.Split(where, ",")
	if len(parts) != 3 {
		return errors.New("expected a folder and two ports")
	}
	var ports [2]int
	for i, text := range parts[1:] {
		var err error
		if ports[i], err = strconv.Atoi(text); err != nil {
			return err
		}
	}
	c := embed.NewConfig()
	c.Dir = parts[0]
	c.LogLevel = "error"
	client, peer := url.URL{Scheme: "http", Host: loopback(ports[0])}, url.URL{Scheme: "http", Host: loopback(ports[1])}
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	e, err := embed.StartEtcd(c)
	if err != nil {
		return err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, os.Interrupt)
	select {
	case <-stop:
		e.Close()
		return nil
	case err := <-e.Err():
		return err
	}
}
