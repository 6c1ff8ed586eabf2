/* A mount without FUSE of a copy of a fixture's file, for tests that change and read it. */
#ifndef H5_TESTS_VFS_SCENE_H
#define H5_TESTS_VFS_SCENE_H

#include "store/file_set.h"
#include "vfs/vfs.h"

struct vfs_scene {
	char path[512]; /* of the copy */
	bool in_place;	/* it is the fixture's file itself */
	struct h5_file_set *set;
	struct h5_vfs *vfs;
};

/* Lines that were written to the log. */
extern unsigned vfs_scene_logged;

void vfs_scene_open(struct vfs_scene *scene, const char *fixture);
/* The same with these options. */
void vfs_scene_open_as(struct vfs_scene *scene, const char *fixture,
		       const struct h5_file_set_options *options);
/* The same on a mount for reading. */
void vfs_scene_open_to_read(struct vfs_scene *scene, const char *fixture);
/* A mount for reading of the fixture's file, with the files beside it. */
void vfs_scene_open_in_place(struct vfs_scene *scene, const char *fixture);
/* Commits, closes the mount, and removes the copy. */
void vfs_scene_close(struct vfs_scene *scene);
/* The path is below the root, without a slash at the ends. The node is to be forgotten. */
int vfs_scene_find(struct vfs_scene *scene, const char *path, struct h5_node **node);
/* Sets an xattr. */
int vfs_scene_set(struct vfs_scene *scene, const char *path, const char *name, const char *value);
/* Forgets all that is cached and not in use. */
void vfs_scene_empty_caches(struct vfs_scene *scene);

#endif
