// Package util stands in for test/integration/util: no server and no scheduler are started, volumes are remembered.
package util

import (
	"context"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/backend/queue"
)

// Nobody is a scheduler that does nothing.
type Nobody struct{ SchedulingQueue queue.SchedulingQueue }

func (Nobody) Run(context.Context) {}

type TestContext struct {
	NS                *v1.Namespace
	Ctx, SchedulerCtx context.Context
	ClientSet         kubernetes.Interface
	InformerFactory   informers.SharedInformerFactory
	Scheduler         Nobody
	Volumes           []*v1.PersistentVolume
	Claims            []*v1.PersistentVolumeClaim
}

// last is what the test that runs has.
var last *TestContext

func InitTestAPIServer(t *testing.T, _ string, _ admission.Interface) *TestContext {
	last = &TestContext{NS: &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "steps"}}, Ctx: t.Context(), SchedulerCtx: t.Context()}
	return last
}

func InitTestSchedulerWithNS(t *testing.T, name string, _ ...scheduler.Option) *TestContext {
	return InitTestAPIServer(t, name, nil)
}

func InitTestSchedulerWithOptions(_ *testing.T, context *TestContext, _ int, _ ...scheduler.Option) *TestContext {
	return context
}

func SyncSchedulerInformerFactory(*TestContext) {}

func CreatePV(_ kubernetes.Interface, volume *v1.PersistentVolume) (*v1.PersistentVolume, error) {
	last.Volumes = append(last.Volumes, volume)
	return volume, nil
}

func CreatePVC(_ kubernetes.Interface, claim *v1.PersistentVolumeClaim) (*v1.PersistentVolumeClaim, error) {
	last.Claims = append(last.Claims, claim)
	return claim, nil
}

func PodScheduled(kubernetes.Interface, string, string) wait.ConditionWithContextFunc {
	panic("only asked by tests of plugins")
}

var PodUnschedulable = PodScheduled
