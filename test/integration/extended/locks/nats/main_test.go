package nats_test

import "testing"

func TestMain(m *testing.M) { service.Main(m) }

func TestPausedHolder(t *testing.T) { service.Test(t) }

func TestOrder(t *testing.T) { service.TestOrder(t) }
