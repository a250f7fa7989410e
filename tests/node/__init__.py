"""The product's own image and chart on real kubelets, with real containers: `make test-node`, and `make test-image` for the image alone."""
