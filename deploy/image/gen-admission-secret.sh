#!/bin/sh
# Volcano's chart runs this once: ./gen-admission-secret.sh --service NAME --namespace NAMESPACE --secret NAME
exec pumice admission-secret "$@"
