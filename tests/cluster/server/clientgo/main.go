// A small controller, as most are written: it speaks protobuf, is elected by a Lease, and creates, updates, patches, applies and watches.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
}

func demand(holds bool, what string) {
	if !holds {
		check(fmt.Errorf("not so: %s", what))
	}
}

func main() {
	config := must(clientcmd.BuildConfigFromFlags("", os.Args[1]))
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	client := kubernetes.NewForConfigOrDie(config)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	lock := must(resourcelock.New(resourcelock.LeasesResourceLock, os.Args[2], "controller", client.CoreV1(), client.CoordinationV1(),
		resourcelock.ResourceLockConfig{Identity: "one"}))
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 200 * time.Millisecond, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				work(ctx, client, os.Args[2])
				readMetadata(ctx, metadata.NewForConfigOrDie(config), os.Args[2])
				first := must(client.CoordinationV1().Leases(os.Args[2]).Get(ctx, "controller", metav1.GetOptions{}))
				for renewed := first; renewed.Spec.RenewTime.Equal(first.Spec.RenewTime); time.Sleep(100 * time.Millisecond) {
					renewed = must(client.CoordinationV1().Leases(os.Args[2]).Get(ctx, "controller", metav1.GetOptions{}))
				}
				fmt.Println("renewed its lease")
				cancel()
			},
			OnStoppedLeading: func() { fmt.Println("released its lease") },
		},
	})
}

func work(ctx context.Context, client kubernetes.Interface, namespace string) {
	maps := client.CoreV1().ConfigMaps(namespace)
	seen := make(chan string, 100)
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	factory.Core().V1().ConfigMaps().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { seen <- "added " + obj.(*corev1.ConfigMap).Name },
		UpdateFunc: func(_, obj any) { seen <- "updated " + obj.(*corev1.ConfigMap).Data["step"] },
		DeleteFunc: func(obj any) { seen <- "deleted" },
	})
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())

	made := must(maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "steps"}, Data: map[string]string{"step": "created"}}, metav1.CreateOptions{}))
	made.Data["step"] = "replaced"
	made = must(maps.Update(ctx, made, metav1.UpdateOptions{}))
	demand(len(made.ManagedFields) == 1 && made.ManagedFields[0].FieldsV1 != nil, "an update in protobuf keeps the owners of fields")
	must(maps.Patch(ctx, "steps", types.MergePatchType, []byte(`{"data":{"step":"patched"}}`), metav1.PatchOptions{}))
	applied := must(maps.Apply(ctx, v1.ConfigMap("steps", namespace).WithData(map[string]string{"step": "applied"}), metav1.ApplyOptions{FieldManager: "other", Force: true}))
	for _, entry := range applied.ManagedFields {
		owns := strings.Contains(string(entry.FieldsV1.Raw), "f:step")
		demand(owns == (entry.Manager == "other"), "who applies by force owns the field alone")
	}
	check(maps.Delete(ctx, "steps", metav1.DeleteOptions{}))
	for text := ""; text != "deleted"; {
		if text = <-seen; text != "added kube-root-ca.crt" {
			fmt.Println(text)
		}
	}

	class := ""
	claim := must(client.CoreV1().PersistentVolumeClaims(namespace).Create(ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "claim"},
		Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}},
	}, metav1.CreateOptions{}))
	demand(claim.Spec.StorageClassName != nil && *claim.Spec.StorageClassName == "", "a class that is empty is not one that was left out")

	data := map[string]any{"spec": map[string]any{"replicas": float64(3)}}
	revision := must(client.AppsV1().ControllerRevisions(namespace).Create(ctx, &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Name: "revision"}, Revision: 1, Data: runtime.RawExtension{Raw: must(json.Marshal(data))},
	}, metav1.CreateOptions{}))
	var kept map[string]any
	check(json.Unmarshal(revision.Data.Raw, &kept))
	demand(equality.Semantic.DeepEqual(kept, data), "the data of a ControllerRevision are kept")
}

// Many managers watch kinds of others by their metadata alone.
func readMetadata(ctx context.Context, client metadata.Interface, namespace string) {
	factory := metadatainformer.NewFilteredSharedInformerFactory(client, 0, namespace, nil)
	informer := factory.ForResource(corev1.SchemeGroupVersion.WithResource("configmaps")).Informer()
	factory.Start(ctx.Done())
	demand(cache.WaitForCacheSync(ctx.Done(), informer.HasSynced), "an informer of metadata is in step")
	fmt.Println("read metadata")
}
