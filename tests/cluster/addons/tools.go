//go:build tools

// Package addons pins the versions of helm, and of the cluster's DNS server.
package addons

import _ "helm.sh/helm/v3/cmd/helm"
