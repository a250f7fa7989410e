//go:build tools

// Package server pins the versions of the two programs that the cluster tests run.
package server

import (
	_ "go.etcd.io/etcd/server/v3"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
)
