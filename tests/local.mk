# Unit tests: one libcheck program a module. Their HDF5 files are made by the scripts in tests/fixtures.
UNIT_TESTS = \
	tests/unit/check_added_rows \
	tests/unit/check_array \
	tests/unit/check_attribute \
	tests/unit/check_attribute_write \
	tests/unit/check_await \
	tests/unit/check_background \
	tests/unit/check_bad_structures \
	tests/unit/check_base \
	tests/unit/check_btree \
	tests/unit/check_btree1_nodes \
	tests/unit/check_btree1_write \
	tests/unit/check_btree2_faults \
	tests/unit/check_btree2_write \
	tests/unit/check_boxes \
	tests/unit/check_bucket \
	tests/unit/check_bucket_objects \
	tests/unit/check_cache_image \
	tests/unit/check_change_effects \
	tests/unit/check_change_saved \
	tests/unit/check_change_unit \
	tests/unit/check_changed_files \
	tests/unit/check_check \
	tests/unit/check_chunk_damage \
	tests/unit/check_choose_chunks \
	tests/unit/check_chunk_index \
	tests/unit/check_chunk_index_cursor \
	tests/unit/check_chunk_index_limits \
	tests/unit/check_chunk_index_parts \
	tests/unit/check_chunk_index_write \
	tests/unit/check_commit_extension \
	tests/unit/check_commit_order \
	tests/unit/check_contents_order \
	tests/unit/check_convert \
	tests/unit/check_credentials \
	tests/unit/check_daemon \
	tests/unit/check_dataset \
	tests/unit/check_dataset_again \
	tests/unit/check_dataset_bounds \
	tests/unit/check_dataset_changes \
	tests/unit/check_dataset_create \
	tests/unit/check_dataset_faults \
	tests/unit/check_dataset_interrupts \
	tests/unit/check_dataset_write \
	tests/unit/check_dataspace \
	tests/unit/check_datatype \
	tests/unit/check_datatype_encode \
	tests/unit/check_dense_faults \
	tests/unit/check_dense_write \
	tests/unit/check_disk_cache \
	tests/unit/check_disk_budget \
	tests/unit/check_disk_folder \
	tests/unit/check_file \
	tests/unit/check_file_formats \
	tests/unit/check_file_set \
	tests/unit/check_filter \
	tests/unit/check_filter_encode \
	tests/unit/check_filter_faults \
	tests/unit/check_filter_libs \
	tests/unit/check_filter_list \
	tests/unit/check_formats \
	tests/unit/check_extents \
	tests/unit/check_failed_requests \
	tests/unit/check_family \
	tests/unit/check_family_open \
	tests/unit/check_fetcher \
	tests/unit/check_fetcher_start \
	tests/unit/check_fixed_array_write \
	tests/unit/check_free_managers \
	tests/unit/check_give_back \
	tests/unit/check_global_heap_write \
	tests/unit/check_grants \
	tests/unit/check_group \
	tests/unit/check_group_faults \
	tests/unit/check_group_write \
	tests/unit/check_header_check \
	tests/unit/check_header_create \
	tests/unit/check_header_edit \
	tests/unit/check_header_faults \
	tests/unit/check_header_insert \
	tests/unit/check_header_limits \
	tests/unit/check_header_order \
	tests/unit/check_header_place \
	tests/unit/check_heap \
	tests/unit/check_heap_formats \
	tests/unit/check_heap_write \
	tests/unit/check_held \
	tests/unit/check_holes \
	tests/unit/check_identity \
	tests/unit/check_index_damage_write \
	tests/unit/check_index_read_faults \
	tests/unit/check_index_formats \
	tests/unit/check_index_order \
	tests/unit/check_intake \
	tests/unit/check_invalidate \
	tests/unit/check_journal \
	tests/unit/check_journal_names \
	tests/unit/check_json_read \
	tests/unit/check_kerchunk \
	tests/unit/check_layout \
	tests/unit/check_link_formats \
	tests/unit/check_listing \
	tests/unit/check_local \
	tests/unit/check_loop \
	tests/unit/check_lost_replies \
	tests/unit/check_lower_bound \
	tests/unit/check_log \
	tests/unit/check_lru \
	tests/unit/check_malformed \
	tests/unit/check_members \
	tests/unit/check_memory \
	tests/unit/check_message_encode \
	tests/unit/check_mount_answers \
	tests/unit/check_mount_tables \
	tests/unit/check_mountpoint \
	tests/unit/check_name \
	tests/unit/check_name_change \
	tests/unit/check_new_file \
	tests/unit/check_negotiate \
	tests/unit/check_node_number \
	tests/unit/check_named \
	tests/unit/check_number \
	tests/unit/check_number_parse \
	tests/unit/check_object \
	tests/unit/check_object_damage \
	tests/unit/check_object_faults \
	tests/unit/check_object_removal \
	tests/unit/check_offline \
	tests/unit/check_offline_results \
	tests/unit/check_onion \
	tests/unit/check_open_write \
	tests/unit/check_opening \
	tests/unit/check_options \
	tests/unit/check_overlay \
	tests/unit/check_rare \
	tests/unit/check_pending \
	tests/unit/check_pipeline \
	tests/unit/check_plot \
	tests/unit/check_pool \
	tests/unit/check_progress \
	tests/unit/check_read_faults \
	tests/unit/check_readahead \
	tests/unit/check_reading \
	tests/unit/check_record \
	tests/unit/check_recovery \
	tests/unit/check_refused \
	tests/unit/check_remembered \
	tests/unit/check_remote \
	tests/unit/check_removal_faults \
	tests/unit/check_remote_cells \
	tests/unit/check_remote_files \
	tests/unit/check_remote_link \
	tests/unit/check_remote_plan \
	tests/unit/check_replacement \
	tests/unit/check_replies \
	tests/unit/check_report \
	tests/unit/check_request_again \
	tests/unit/check_request_effects \
	tests/unit/check_request_faults \
	tests/unit/check_request_pieces \
	tests/unit/check_requests \
	tests/unit/check_room \
	tests/unit/check_selection \
	tests/unit/check_selection_walk \
	tests/unit/check_sequence \
	tests/unit/check_shape \
	tests/unit/check_side_threads \
	tests/unit/check_space \
	tests/unit/check_space_account \
	tests/unit/check_structured \
	tests/unit/check_subfiles \
	tests/unit/check_subfiles_open \
	tests/unit/check_symbol_table_faults \
	tests/unit/check_symbol_table_write \
	tests/unit/check_tables \
	tests/unit/check_system \
	tests/unit/check_target \
	tests/unit/check_transaction \
	tests/unit/check_transfers \
	tests/unit/check_transfers_disk \
	tests/unit/check_transfers_store \
	tests/unit/check_tree \
	tests/unit/check_tree_entries \
	tests/unit/check_tree_files \
	tests/unit/check_tree_listing \
	tests/unit/check_tree_nodes \
	tests/unit/check_unmount \
	tests/unit/check_value \
	tests/unit/check_value_guess \
	tests/unit/check_value_parse \
	tests/unit/check_view_arrays \
	tests/unit/check_view_documents \
	tests/unit/check_view_input \
	tests/unit/check_view_parts \
	tests/unit/check_view_work \
	tests/unit/check_views \
	tests/unit/check_virtual \
	tests/unit/check_walk \
	tests/unit/check_window \
	tests/unit/check_write_faults \
	tests/unit/check_zarr_attributes \
	tests/unit/check_zarr_dimensions \
	tests/unit/crash_replay

EXTRA_DIST += tests/lib/bytes.h tests/lib/chunk_index_account.h tests/lib/edge.h tests/lib/examples.h tests/lib/fault_step.h tests/lib/filter_data.h \
	tests/lib/filter_samples.h tests/lib/objects.h tests/lib/unit.h tests/lib/values.h
# Folders of their own, with files whose calls are recorded and fail.
scratch = tests/lib/scratch.c tests/lib/scratch.h tests/lib/fault_io.c tests/lib/fault_io.h \
	tests/lib/python_runner.c tests/lib/python_runner.h tests/lib/space_account.c tests/lib/space_account.h
index_target = tests/lib/index_target.c tests/lib/index_target.h $(scratch)
crash_image = tests/lib/crash_image.c tests/lib/crash_image.h tests/lib/crash_workloads.h
tests_unit_check_btree1_nodes_SOURCES = tests/unit/check_btree1_nodes.c $(index_target)
tests_unit_check_btree1_write_SOURCES = tests/unit/check_btree1_write.c $(index_target) $(crash_image)
btree2_model = tests/lib/btree2_model.c tests/lib/btree2_model.h $(index_target)
tests_unit_check_btree2_faults_SOURCES = tests/unit/check_btree2_faults.c $(btree2_model) $(crash_image) $(fault_alloc)
tests_unit_check_btree2_faults_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags)
tests_unit_check_btree2_write_SOURCES = tests/unit/check_btree2_write.c $(btree2_model)
tests_unit_check_chunk_index_limits_SOURCES = tests/unit/check_chunk_index_limits.c $(index_target)
tests_unit_check_chunk_index_parts_SOURCES = tests/unit/check_chunk_index_parts.c $(index_target)
tests_unit_check_chunk_index_write_SOURCES = tests/unit/check_chunk_index_write.c $(index_target) $(crash_image)
group_model = tests/lib/group_model.c tests/lib/group_model.h $(scratch)
tests_unit_check_filter_encode_SOURCES = tests/unit/check_filter_encode.c $(fault_alloc) $(scratch)
tests_unit_check_filter_encode_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags)
tests_unit_check_filter_faults_SOURCES = tests/unit/check_filter_faults.c $(fault_alloc)
tests_unit_check_filter_faults_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags),--wrap=LZ4_compress_default,--wrap=__lzo_init_v2,--wrap=aec_encode,--wrap=blosc_compress_ctx,--wrap=charls_jpegls_decoder_create,--wrap=charls_jpegls_encoder_create,--wrap=charls_jpegls_encoder_encode_from_buffer,--wrap=libdeflate_zlib_compress,--wrap=lzo1x_1_compress,--wrap=snappy_compress
tests_unit_check_fixed_array_write_SOURCES = tests/unit/check_fixed_array_write.c $(index_target) $(crash_image)
tests_unit_check_index_damage_write_SOURCES = tests/unit/check_index_damage_write.c $(index_target)
tests_unit_check_index_order_SOURCES = tests/unit/check_index_order.c $(index_target) $(crash_image)
tests_unit_check_index_read_faults_SOURCES = tests/unit/check_index_read_faults.c $(fault_alloc) $(index_target)
tests_unit_check_index_read_faults_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags)
tests_unit_check_added_rows_SOURCES = tests/unit/check_added_rows.c $(scratch)
tests_unit_check_header_edit_SOURCES = tests/unit/check_header_edit.c $(scratch)
tests_unit_check_attribute_write_SOURCES = tests/unit/check_attribute_write.c $(crash_image) $(fault_alloc) $(scratch)
tests_unit_check_attribute_write_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags)
tests_unit_check_group_faults_SOURCES = tests/unit/check_group_faults.c $(group_model) tests/lib/fault_call.c tests/lib/fault_call.h $(fault_alloc)
tests_unit_check_group_faults_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags) $(fault_call_flags)
tests_unit_check_commit_extension_SOURCES = tests/unit/check_commit_extension.c $(fault_alloc) $(scratch)
tests_unit_check_commit_extension_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags)
tests_unit_check_commit_order_SOURCES = tests/unit/check_commit_order.c $(group_model) $(crash_image)
tests_unit_check_contents_order_SOURCES = tests/unit/check_contents_order.c $(removal_scene) $(crash_image)
tests_unit_check_header_order_SOURCES = tests/unit/check_header_order.c $(scratch) $(crash_image)
tests_unit_check_group_write_SOURCES = tests/unit/check_group_write.c $(group_model) $(crash_image)
tests_unit_check_header_create_SOURCES = tests/unit/check_header_create.c $(crash_image) $(fault_alloc) $(scratch)
tests_unit_check_header_create_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags)
header_model = tests/lib/header_model.c tests/lib/header_model.h $(scratch)
tests_unit_check_header_faults_SOURCES = tests/unit/check_header_faults.c $(header_model) $(crash_image) $(fault_alloc)
tests_unit_check_header_faults_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags)
tests_unit_check_header_insert_SOURCES = tests/unit/check_header_insert.c $(header_model)
tests_unit_check_header_place_SOURCES = tests/unit/check_header_place.c $(fault_alloc) $(scratch)
tests_unit_check_header_place_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags)
symbol_model = tests/lib/symbol_model.c tests/lib/symbol_model.h $(scratch)
tests_unit_check_symbol_table_faults_SOURCES = tests/unit/check_symbol_table_faults.c $(symbol_model) $(fault_alloc)
tests_unit_check_symbol_table_faults_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags)
tests_unit_check_symbol_table_write_SOURCES = tests/unit/check_symbol_table_write.c $(symbol_model) $(crash_image)
tests_unit_check_base_SOURCES = tests/unit/check_base.c $(fault_alloc)
tests_unit_check_base_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags),--wrap=clock_gettime
tests_unit_check_extents_SOURCES = tests/unit/check_extents.c $(fault_alloc)
tests_unit_check_extents_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags)
tests_unit_check_subfiles_SOURCES = tests/unit/check_subfiles.c tests/lib/fake_piece.h
tests_unit_check_named_SOURCES = tests/unit/check_named.c $(scratch)
tests_unit_check_named_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=fopen64,--wrap=open64,--wrap=openat64,--wrap=statx,--wrap=readlinkat,--wrap=fsync,--wrap=syscall
tests_unit_check_sequence_SOURCES = tests/unit/check_sequence.c $(scratch)
tests_unit_check_name_change_SOURCES = tests/unit/check_name_change.c $(crash_image) $(fault_alloc) $(scratch)
tests_unit_check_name_change_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags)
removal_scene = tests/lib/removal_scene.c tests/lib/removal_scene.h $(scratch)
tests_unit_check_object_damage_SOURCES = tests/unit/check_object_damage.c $(scratch)
tests_unit_check_object_faults_SOURCES = tests/unit/check_object_faults.c tests/lib/fault_call.c tests/lib/fault_call.h $(fault_alloc) $(scratch)
tests_unit_check_object_faults_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags) $(fault_call_flags),--wrap=h5_interrupt_check
tests_unit_check_object_removal_SOURCES = tests/unit/check_object_removal.c $(removal_scene)
tests_unit_check_removal_faults_SOURCES = tests/unit/check_removal_faults.c $(crash_image) tests/lib/fault_call.c tests/lib/fault_call.h $(fault_alloc) $(removal_scene)
tests_unit_check_removal_faults_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags) $(fault_call_flags)
tests_unit_check_replacement_SOURCES = tests/unit/check_replacement.c $(crash_image) $(fault_alloc) $(scratch)
tests_unit_check_replacement_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags)
tests_unit_check_shape_SOURCES = tests/unit/check_shape.c $(crash_image) $(fault_alloc) $(scratch)
tests_unit_check_shape_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags)
tests_unit_check_system_SOURCES = tests/unit/check_system.c src/fuse/landlock.c src/fuse/landlock.h \
	src/fuse/mountinfo.c src/fuse/mountinfo.h src/fuse/sandbox.c src/fuse/sandbox.h src/fuse/seccomp.c src/fuse/seccomp.h
tests_unit_check_system_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=syscall,--wrap=fopen,--wrap=fopen64,--wrap=h5_log,--wrap=prctl,--wrap=seccomp_init,--wrap=seccomp_release,--wrap=seccomp_attr_set,--wrap=seccomp_rule_add,--wrap=seccomp_rule_add_array,--wrap=seccomp_load,--wrap=seccomp_api_get
tests_unit_check_log_SOURCES = tests/unit/check_log.c src/fuse/log.c src/fuse/log.h $(strict_lock) $(scratch)
tests_unit_check_log_LDFLAGS = $(AM_LDFLAGS) $(strict_lock_flags),--wrap=fstat64
tests_unit_check_await_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=clock_gettime,--wrap=pthread_cond_signal,--wrap=pthread_cond_timedwait,--wrap=pthread_cond_wait
tests_unit_check_background_SOURCES = tests/unit/check_background.c src/fuse/background.c src/fuse/background.h src/fuse/signals.c src/fuse/signals.h
tests_unit_check_background_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=h5_log,--wrap=fork,--wrap=read,--wrap=waitpid,--wrap=_exit
tests_unit_check_daemon_SOURCES = tests/unit/check_daemon.c tests/lib/daemon_scene.h tests/lib/trace.h src/fuse/daemon.c src/fuse/daemon.h
tests_unit_check_daemon_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=access,--wrap=close,--wrap=fuse_remove_signal_handlers,--wrap=fuse_session_destroy,--wrap=fuse_session_loop,--wrap=fuse_session_loop_mt,--wrap=fuse_session_loop_mt_312,--wrap=fuse_session_unmount,--wrap=fuse_set_log_func,--wrap=fuse_set_signal_handlers,--wrap=getgid,--wrap=getrlimit64,--wrap=getuid,--wrap=mallopt,--wrap=open64,--wrap=setrlimit64,--wrap=time
tests_unit_check_unmount_SOURCES = tests/unit/check_unmount.c tests/lib/unmount_scene.h tests/lib/trace.h src/fuse/unmount.c src/fuse/unmount.h src/fuse/unmounter.c src/fuse/unmounter.h
tests_unit_check_unmount_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=_exit,--wrap=calloc,--wrap=close,--wrap=closefrom,--wrap=dup2,--wrap=dup3,--wrap=execlp,--wrap=fopen64,--wrap=fork,--wrap=fsync,--wrap=fuse_session_fd,--wrap=fuse_session_unmount,--wrap=geteuid,--wrap=getppid,--wrap=getxattr,--wrap=kill,--wrap=mount,--wrap=open64,--wrap=pipe2,--wrap=poll,--wrap=prctl,--wrap=read,--wrap=recv,--wrap=send,--wrap=setsid,--wrap=socketpair,--wrap=stat64,--wrap=syscall,--wrap=umount2,--wrap=waitpid
tests_unit_check_mountpoint_SOURCES = tests/unit/check_mountpoint.c src/fuse/mountpoint.c src/fuse/mountpoint.h $(fault_alloc) $(scratch)
tests_unit_check_mountpoint_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags),--wrap=access,--wrap=fuse_session_mount,--wrap=getxattr,--wrap=opendir,--wrap=statx
tests_unit_check_side_threads_SOURCES = tests/unit/check_side_threads.c src/fuse/closer.c src/fuse/closer.h src/fuse/commit.c src/fuse/commit.h src/fuse/watch.c src/fuse/watch.h
tests_unit_check_side_threads_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=calloc,--wrap=clock_gettime,--wrap=h5_thread_start,--wrap=malloc,--wrap=sigtimedwait
tests_unit_check_opening_SOURCES = tests/unit/check_opening.c tests/lib/trace.h src/fuse/opening.c src/fuse/opening.h
tests_unit_check_opening_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=h5_disk_folder_open,--wrap=h5_fetcher_start,--wrap=h5_file_set_close,--wrap=h5_open_file,--wrap=h5_remote_close,--wrap=h5_remote_end,--wrap=h5_remote_set_listener
tests_unit_check_report_SOURCES = tests/unit/check_report.c src/fuse/report.c src/fuse/report.h
tests_unit_check_readahead_SOURCES = tests/unit/check_readahead.c src/fuse/readahead.c src/fuse/readahead.h
tests_unit_check_readahead_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=open64,--wrap=pwrite64
tests_unit_check_negotiate_SOURCES = tests/unit/check_negotiate.c src/fuse/negotiate.c src/fuse/negotiate.h src/fuse/io_uring.c src/fuse/io_uring.h
tests_unit_check_negotiate_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=dup3,--wrap=fuse_session_receive_buf,--wrap=fuse_session_process_buf,--wrap=fuse_session_fd,--wrap=fuse_session_exited,--wrap=fuse_session_exit,--wrap=h5_vfs_set_maps_direct,--wrap=h5_tree_set_maps_direct
replies = src/fuse/directories.c src/fuse/directories.h src/fuse/files.c src/fuse/files.h src/fuse/invalidate.c src/fuse/invalidate.h src/fuse/io_uring.c src/fuse/io_uring.h src/fuse/log.c src/fuse/log.h src/fuse/loop.c src/fuse/loop.h src/fuse/names.c src/fuse/names.h src/fuse/negotiate.c src/fuse/negotiate.h src/fuse/operations.c src/fuse/operations.h src/fuse/readahead.c src/fuse/readahead.h src/fuse/request.c src/fuse/request.h src/fuse/tree_operations.c src/fuse/tree_operations.h src/fuse/xattrs.c src/fuse/xattrs.h
tests_unit_check_replies_SOURCES = tests/unit/check_replies.c $(replies)
tests_unit_check_failed_requests_SOURCES = tests/unit/check_failed_requests.c $(replies)
tests_unit_check_failed_requests_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=fuse_reply_attr,--wrap=fuse_reply_buf,--wrap=fuse_reply_create,--wrap=fuse_reply_entry,--wrap=fuse_reply_err,--wrap=fuse_reply_lseek,--wrap=fuse_reply_open,--wrap=fuse_reply_readlink,--wrap=fuse_reply_statfs,--wrap=fuse_reply_write,--wrap=fuse_reply_xattr,--wrap=fuse_req_userdata,--wrap=h5_log_failure,--wrap=h5_tree_commit,--wrap=h5_tree_enter,--wrap=h5_tree_enter_too,--wrap=h5_tree_getattr,--wrap=h5_tree_getxattr,--wrap=h5_tree_handle_inside,--wrap=h5_tree_kind,--wrap=h5_tree_leave,--wrap=h5_tree_listxattr,--wrap=h5_tree_lookup,--wrap=h5_tree_open_file,--wrap=h5_tree_opendir,--wrap=h5_tree_path,--wrap=h5_tree_read,--wrap=h5_tree_readdir,--wrap=h5_tree_readlink,--wrap=h5_tree_seek,--wrap=h5_tree_statfs,--wrap=h5_vfs_create,--wrap=h5_vfs_dir_rewind,--wrap=h5_vfs_fallocate,--wrap=h5_vfs_find_path,--wrap=h5_vfs_flush,--wrap=h5_vfs_fsync,--wrap=h5_vfs_fsync_directory,--wrap=h5_vfs_getattr,--wrap=h5_vfs_getxattr,--wrap=h5_vfs_handle_node,--wrap=h5_vfs_hold_file,--wrap=h5_vfs_is_passing,--wrap=h5_vfs_link,--wrap=h5_vfs_listxattr,--wrap=h5_vfs_lookup,--wrap=h5_vfs_lookup_id,--wrap=h5_vfs_lookup_parent,--wrap=h5_vfs_mkdir,--wrap=h5_vfs_mknod,--wrap=h5_vfs_node,--wrap=h5_vfs_open_file,--wrap=h5_vfs_opendir,--wrap=h5_vfs_read,--wrap=h5_vfs_readlink,--wrap=h5_vfs_refresh,--wrap=h5_vfs_removexattr,--wrap=h5_vfs_rename,--wrap=h5_vfs_rmdir,--wrap=h5_vfs_seek,--wrap=h5_vfs_setxattr,--wrap=h5_vfs_size_limit,--wrap=h5_vfs_statfs,--wrap=h5_vfs_symlink,--wrap=h5_vfs_take_dir,--wrap=h5_vfs_truncate,--wrap=h5_vfs_unlink,--wrap=h5_vfs_write
tests_unit_check_lost_replies_SOURCES = tests/unit/check_lost_replies.c $(replies) tests/lib/vfs_scene.c tests/lib/vfs_scene.h tests/lib/tree_scene.c tests/lib/tree_scene.h $(fault_alloc) $(scratch)
tests_unit_check_lost_replies_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags),--wrap=h5_tree_entry,--wrap=h5_vfs_create,--wrap=h5_tree_note_name,--wrap=h5_vfs_is_direct,--wrap=fuse_reply_create,--wrap=fuse_reply_entry,--wrap=fuse_reply_err,--wrap=fuse_reply_open,--wrap=fuse_req_interrupted,--wrap=fuse_req_userdata,--wrap=fuse_session_exited,--wrap=h5_tree_close_file,--wrap=h5_tree_closedir,--wrap=h5_tree_forget,--wrap=h5_vfs_close_file,--wrap=h5_vfs_closedir,--wrap=h5_vfs_forget
tests_unit_check_replies_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=fuse_add_direntry,--wrap=fuse_add_direntry_plus,--wrap=fuse_reply_lseek,--wrap=fuse_reply_readlink,--wrap=fuse_reply_xattr,--wrap=h5_log_failure,--wrap=h5_tree_path,--wrap=h5_vfs_hold_file,--wrap=h5_vfs_listxattr,--wrap=h5_vfs_read,--wrap=h5_vfs_readlink,--wrap=h5_vfs_release_file,--wrap=h5_vfs_seek,--wrap=h5_vfs_truncate,--wrap=malloc,--wrap=fuse_reply_attr,--wrap=fuse_reply_buf,--wrap=fuse_reply_err,--wrap=fuse_reply_open,--wrap=fuse_req_userdata,--wrap=h5_tree_enter,--wrap=h5_tree_handle_inside,--wrap=h5_tree_kind,--wrap=h5_tree_open_file,--wrap=h5_tree_readdir,--wrap=h5_tree_root,--wrap=h5_vfs_dir_count,--wrap=h5_vfs_dir_error,--wrap=h5_vfs_dir_go,--wrap=h5_vfs_dir_name,--wrap=h5_vfs_dir_next,--wrap=h5_vfs_dir_parent,--wrap=h5_vfs_dir_read,--wrap=h5_vfs_dir_rewind,--wrap=h5_vfs_dir_self,--wrap=h5_vfs_fallocate,--wrap=h5_vfs_find_path,--wrap=h5_vfs_fsync,--wrap=h5_vfs_getattr,--wrap=h5_vfs_is_direct,--wrap=h5_vfs_node,--wrap=h5_vfs_open_file,--wrap=h5_vfs_refresh,--wrap=h5_vfs_size_limit
tests_unit_check_options_SOURCES = tests/unit/check_options.c $(fault_alloc) src/fuse/helper.c src/fuse/helper.h src/fuse/io_uring.c src/fuse/io_uring.h src/fuse/libfuse_arguments.c src/fuse/libfuse_arguments.h src/fuse/log.c src/fuse/log.h src/fuse/option_defaults.c src/fuse/option_defaults.h src/fuse/option_table.c src/fuse/option_table.h src/fuse/option_values.c src/fuse/option_values.h src/fuse/options.c src/fuse/options.h
tests_unit_check_options_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags),--wrap=fuse_opt_add_arg,--wrap=fuse_opt_add_opt,--wrap=fuse_opt_add_opt_escaped,--wrap=getgid,--wrap=getuid,--wrap=h5_processors,--wrap=sysconf
tests_unit_check_invalidate_SOURCES = tests/unit/check_invalidate.c src/fuse/invalidate.c src/fuse/invalidate.h $(fault_alloc)
tests_unit_check_invalidate_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags),--wrap=fuse_lowlevel_notify_inval_inode,--wrap=fuse_lowlevel_notify_inval_entry,--wrap=fuse_lowlevel_notify_store,--wrap=fuse_session_exit,--wrap=h5_vfs_getattr,--wrap=h5_vfs_read,--wrap=h5_vfs_tell_size,--wrap=h5_vfs_on_stale_names,--wrap=h5_vfs_take_stale_name,--wrap=pthread_create
tests_unit_check_loop_SOURCES = tests/unit/check_loop.c src/fuse/loop.c src/fuse/loop.h
tests_unit_check_loop_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=calloc,--wrap=fuse_session_receive_buf,--wrap=fuse_session_process_buf,--wrap=fuse_session_fd,--wrap=fuse_session_exited,--wrap=fuse_session_exit,--wrap=fuse_req_userdata,--wrap=fuse_req_interrupted,--wrap=h5_processors,--wrap=h5_thread_start,--wrap=clock_gettime,--wrap=poll,--wrap=pthread_join,--wrap=pthread_timedjoin_np
tests_unit_check_transaction_SOURCES = tests/unit/check_transaction.c $(scratch)
tests_unit_check_target_SOURCES = tests/unit/check_target.c $(scratch)
tests_unit_check_progress_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=clock_gettime
tests_unit_check_tree_SOURCES = tests/unit/check_tree.c tests/lib/fault_call.c tests/lib/fault_call.h $(fault_alloc) $(strict_lock) $(scratch)
tests_unit_check_tree_LDFLAGS = $(AM_LDFLAGS) $(strict_lock_flags) $(fault_alloc_flags) $(fault_call_flags)
tree_scene = tests/lib/tree_scene.c tests/lib/tree_scene.h tests/lib/fault_call.c tests/lib/fault_call.h $(strict_lock) $(scratch)
tests_unit_check_tree_entries_SOURCES = tests/unit/check_tree_entries.c $(tree_scene)
tests_unit_check_tree_entries_LDFLAGS = $(AM_LDFLAGS) $(strict_lock_flags) $(fault_call_flags),--wrap=readdir64,--wrap=fdopendir,--wrap=fgetxattr,--wrap=flistxattr,--wrap=readlinkat,--wrap=h5_named_open_without_links,--wrap=h5_vfs_dir_go,--wrap=h5_vfs_dir_read
tests_unit_check_tree_files_SOURCES = tests/unit/check_tree_files.c $(tree_scene)
tests_unit_check_tree_files_LDFLAGS = $(AM_LDFLAGS) $(strict_lock_flags) $(fault_call_flags),--wrap=clock_gettime,--wrap=h5_file_set_share,--wrap=h5_file_stat,--wrap=h5_thread_wait_a_second,--wrap=h5_vfs_fsync_directory,--wrap=h5_vfs_refresh,--wrap=pthread_cond_broadcast
tests_unit_check_tree_listing_SOURCES = tests/unit/check_tree_listing.c $(tree_scene) $(fault_alloc)
tests_unit_check_tree_listing_LDFLAGS = $(AM_LDFLAGS) $(strict_lock_flags) $(fault_alloc_flags) $(fault_call_flags),--wrap=h5_vfs_dir_error
tests_unit_check_tree_nodes_SOURCES = tests/unit/check_tree_nodes.c $(tree_scene)
tests_unit_check_tree_nodes_LDFLAGS = $(AM_LDFLAGS) $(strict_lock_flags) $(fault_call_flags)
dataset_model = tests/lib/dataset_model.c tests/lib/dataset_model.h $(scratch)
tests_unit_check_dataset_again_SOURCES = tests/unit/check_dataset_again.c $(dataset_model) $(fault_alloc)
tests_unit_check_dataset_again_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags)
tests_unit_check_dataset_bounds_SOURCES = tests/unit/check_dataset_bounds.c $(dataset_model) $(fault_alloc)
tests_unit_check_dataset_bounds_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags),--wrap=fdatasync
tests_unit_check_dataset_changes_SOURCES = tests/unit/check_dataset_changes.c $(dataset_model) $(fault_alloc)
tests_unit_check_dataset_changes_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags)
tests_unit_check_dataset_create_SOURCES = tests/unit/check_dataset_create.c $(crash_image) $(fault_alloc) $(scratch)
tests_unit_check_dataset_create_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags)
tests_unit_check_dataset_faults_SOURCES = tests/unit/check_dataset_faults.c $(dataset_model)
tests_unit_check_dataset_interrupts_SOURCES = tests/unit/check_dataset_interrupts.c $(dataset_model)
tests_unit_check_dataset_interrupts_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=h5_interrupt_check
tests_unit_check_dataset_write_SOURCES = tests/unit/check_dataset_write.c $(dataset_model)
dense_model = tests/lib/dense_model.c tests/lib/dense_model.h $(scratch)
tests_unit_check_disk_cache_SOURCES = tests/unit/check_disk_cache.c tests/lib/fault_io.c tests/lib/fault_io.h $(crash_image)
tests_unit_check_dense_write_SOURCES = tests/unit/check_dense_write.c $(dense_model)
journal_scene = tests/lib/journal_scene.c tests/lib/journal_scene.h $(scratch)
tests_unit_check_journal_SOURCES = tests/unit/check_journal.c $(journal_scene)
tests_unit_check_open_write_SOURCES = tests/unit/check_open_write.c $(crash_image) $(fault_alloc) $(scratch)
tests_unit_check_open_write_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags)
tests_unit_check_free_managers_SOURCES = tests/unit/check_free_managers.c $(crash_image) $(scratch)
tests_unit_check_record_SOURCES = tests/unit/check_record.c $(crash_image) $(scratch)
tests_unit_check_recovery_SOURCES = tests/unit/check_recovery.c $(journal_scene) $(fault_alloc)
tests_unit_check_recovery_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags)
tests_unit_crash_replay_SOURCES = \
	tests/lib/crash_image.c \
	tests/lib/crash_image.h \
	tests/lib/crash_opinion.c \
	tests/lib/crash_opinion.h \
	tests/unit/crash_replay.c \
	tests/lib/crash_workloads.c \
	tests/lib/crash_workloads.h \
	tests/lib/fault_io.c \
	tests/lib/fault_io.h
tests_unit_check_space_account_SOURCES = \
	tests/lib/crash_workloads.c \
	tests/lib/crash_workloads.h \
	tests/unit/check_space_account.c \
	$(scratch)
tests_unit_check_local_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=flock,--wrap=preadv64,--wrap=pwrite64
tests_unit_check_btree_SOURCES = tests/unit/check_btree.c $(fault_alloc)
tests_unit_check_btree_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags)
tests_unit_check_family_open_SOURCES = tests/unit/check_family_open.c $(fault_alloc) $(scratch)
tests_unit_check_family_open_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags),--wrap=fchmod,--wrap=fchown,--wrap=fstat64,--wrap=h5_named_sync_folder
tests_unit_check_members_SOURCES = tests/unit/check_members.c tests/lib/fake_piece.h tests/lib/fault_io.c tests/lib/fault_io.h $(fault_alloc)
tests_unit_check_members_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags)
tests_unit_check_malformed_SOURCES = tests/unit/check_malformed.c tests/lib/tree_facts.c tests/lib/tree_facts.h
tests_unit_check_malformed_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc -Wl,--wrap=free
tests_unit_check_array_SOURCES = tests/unit/check_array.c $(fault_alloc)
tests_unit_check_array_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags)
tests_unit_check_lru_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=h5_thread_wait_a_second
tests_unit_check_pool_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=pthread_cond_wait,--wrap=pthread_create
tests_unit_check_room_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=h5_thread_wait_a_second
tests_unit_check_reading_SOURCES = tests/unit/check_reading.c $(fault_alloc) $(vfs_scene)
tests_unit_check_reading_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags),--wrap=h5_pool_start,--wrap=h5_lru_get
# Allocations, and system calls of reading, that fail.
fault_alloc = tests/lib/fault_alloc.c tests/lib/fault_alloc.h
fault_alloc_flags = -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=reallocarray,--wrap=strdup,--wrap=strndup,--wrap=asprintf,--wrap=vasprintf
tests_unit_check_structured_SOURCES = tests/unit/check_structured.c $(fault_alloc)
tests_unit_check_structured_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags)
tests_unit_check_virtual_SOURCES = tests/unit/check_virtual.c $(fault_alloc)
tests_unit_check_virtual_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags)
fault_system = tests/lib/fault_system.c tests/lib/fault_system.h
fault_system_flags = -Wl,--wrap=close,--wrap=fchmod,--wrap=fchown,--wrap=fcntl64,--wrap=fstat64,--wrap=fstatat64,--wrap=fsync,--wrap=getrandom,--wrap=link \
	-Wl,--wrap=open64,--wrap=openat64,--wrap=readdir64,--wrap=readlinkat,--wrap=renameat,--wrap=renameat2,--wrap=statx,--wrap=symlinkat,--wrap=unlink \
	-Wl,--wrap=unlinkat,--wrap=write
tests_unit_check_new_file_SOURCES = tests/unit/check_new_file.c $(fault_system) $(fault_alloc) $(scratch)
tests_unit_check_new_file_LDFLAGS = $(AM_LDFLAGS) $(fault_system_flags) $(fault_alloc_flags)
tests_unit_check_journal_names_SOURCES = tests/unit/check_journal_names.c $(journal_scene) $(fault_system) $(fault_alloc)
tests_unit_check_journal_names_LDFLAGS = $(AM_LDFLAGS) $(fault_system_flags) $(fault_alloc_flags)
fault_call_flags = -Wl,--wrap=pread64,--wrap=preadv64,--wrap=fstat64,--wrap=open64,--wrap=openat64,--wrap=syscall
tests_unit_check_read_faults_SOURCES = tests/unit/check_read_faults.c tests/lib/fault_call.c tests/lib/fault_call.h $(fault_alloc) $(strict_lock) $(scratch)
tests_unit_check_read_faults_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags) $(fault_call_flags) $(strict_lock_flags)
# Locks that are used wrongly.
strict_lock = tests/lib/strict_lock.c tests/lib/strict_lock.h
strict_lock_flags = -Wl,--wrap=pthread_mutex_lock,--wrap=pthread_mutex_trylock,--wrap=pthread_mutex_unlock,--wrap=pthread_cond_wait,--wrap=pthread_cond_timedwait,--wrap=pthread_rwlock_rdlock,--wrap=pthread_rwlock_wrlock,--wrap=pthread_rwlock_tryrdlock,--wrap=pthread_rwlock_trywrlock,--wrap=pthread_rwlock_unlock
vfs_scene = tests/lib/vfs_scene.c tests/lib/vfs_scene.h $(scratch)
tests_unit_check_intake_SOURCES = tests/unit/check_intake.c tests/lib/fault_call.c tests/lib/fault_call.h tests/lib/fault_kinds.h $(fault_alloc) $(vfs_scene)
tests_unit_check_remote_SOURCES = tests/unit/check_remote.c tests/lib/edge.h $(fault_alloc)
tests_unit_check_remote_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags)
tests_unit_check_intake_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags) $(fault_call_flags),--wrap=h5_dataset_writer_ready
tests_unit_check_remote_files_SOURCES = tests/unit/check_remote_files.c tests/lib/link_scene.h $(strict_lock)
tests_unit_check_remote_files_LDFLAGS = $(AM_LDFLAGS) $(strict_lock_flags),--wrap=h5_thread_wait_a_second,--wrap=poll,--wrap=waitpid
tests_unit_check_remote_link_SOURCES = tests/unit/check_remote_link.c tests/lib/link_scene.h $(fault_alloc)
tests_unit_check_remote_link_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags),--wrap=mmap64
tests_unit_check_remote_plan_SOURCES = tests/unit/check_remote_plan.c tests/lib/link_scene.h
tests_unit_check_view_arrays_SOURCES = tests/unit/check_view_arrays.c $(scratch)
tests_unit_check_view_input_SOURCES = tests/unit/check_view_input.c tests/lib/fault_call.c tests/lib/fault_call.h tests/lib/fault_kinds.h $(fault_alloc) $(scratch)
tests_unit_check_view_input_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags) $(fault_call_flags),--wrap=h5_dataset_writer_resize,--wrap=h5_file_block
tests_unit_check_view_parts_SOURCES = tests/unit/check_view_parts.c tests/lib/empty_scene.h $(scratch)
tests_unit_check_view_work_SOURCES = tests/unit/check_view_work.c tests/lib/empty_scene.h $(scratch)
tests_unit_check_view_work_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=h5_interrupt_check
tests_unit_check_views_SOURCES = tests/unit/check_views.c tests/lib/fault_call.c tests/lib/fault_call.h tests/lib/fault_kinds.h $(fault_alloc) $(vfs_scene)
tests_unit_check_views_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags) $(fault_call_flags),--wrap=h5_charge_set,--wrap=h5_file_block,--wrap=h5_interrupt_check
tests_unit_check_memory_SOURCES = tests/unit/check_memory.c tests/lib/vfs_digest.c tests/lib/vfs_digest.h $(vfs_scene)
tests_unit_check_memory_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags),--wrap=realpath,--wrap=free,--wrap=h5_charge_release,--wrap=h5_charge_set,--wrap=h5_lru_get,--wrap=h5_lru_try,--wrap=h5_lru_put,--wrap=h5_lru_put_used,--wrap=h5_lru_add
tests_unit_check_bad_structures_SOURCES = tests/unit/check_bad_structures.c $(vfs_scene)
tests_unit_check_walk_SOURCES = tests/unit/check_walk.c $(fault_alloc) $(vfs_scene)
tests_unit_check_walk_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags),--wrap=h5_interrupt_check
tests_unit_check_offline_SOURCES = tests/unit/check_offline.c tests/lib/said.h tests/lib/fault_call.c tests/lib/fault_call.h tests/lib/fault_kinds.h $(fault_alloc) $(vfs_scene)
offline_calls = -Wl,--wrap=fchmod,--wrap=fchown,--wrap=fchownat,--wrap=fsetxattr,--wrap=ftruncate64,--wrap=futimens,--wrap=linkat,--wrap=mkdirat,--wrap=pwrite64,--wrap=renameat2,--wrap=symlinkat,--wrap=utimensat,--wrap=write
offline_steps = -Wl,--wrap=h5_interrupt_begin,--wrap=h5_progress_show,--wrap=h5_stop_signal,--wrap=h5_vfs_close_file,--wrap=h5_vfs_closedir,--wrap=h5_vfs_dir_read,--wrap=h5_vfs_forget,--wrap=h5_vfs_getxattr,--wrap=h5_vfs_listxattr,--wrap=h5_vfs_lookup,--wrap=h5_vfs_open_file,--wrap=h5_vfs_opendir,--wrap=h5_vfs_read,--wrap=h5_vfs_seek
tests_unit_check_offline_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags) $(fault_call_flags) $(offline_calls) $(offline_steps)
tests_unit_check_offline_results_SOURCES = tests/unit/check_offline_results.c tests/lib/said.h $(vfs_scene)
tests_unit_check_offline_results_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=h5_interrupt_check,--wrap=h5_vfs_getxattr
tests_unit_check_pending_SOURCES = tests/unit/check_pending.c $(crash_image) $(vfs_scene)
tests_unit_check_check_SOURCES = tests/unit/check_check.c tests/lib/fault_call.c tests/lib/fault_call.h tests/lib/fault_kinds.h $(fault_alloc) $(scratch)
tests_unit_check_check_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags) $(fault_call_flags),--wrap=h5_interrupt_check
tests_unit_check_disk_budget_SOURCES = tests/unit/check_disk_budget.c $(scratch)
tests_unit_check_disk_budget_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=fstatat64
tests_unit_check_disk_folder_SOURCES = tests/unit/check_disk_folder.c $(fault_alloc) $(scratch)
tests_unit_check_disk_folder_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags),--wrap=clock_gettime,--wrap=renameat2,--wrap=flock,--wrap=fstat64,--wrap=getrandom,--wrap=openat64,--wrap=unlinkat
tests_unit_check_onion_SOURCES = tests/unit/check_onion.c tests/lib/onion_builder.h $(fault_alloc) $(scratch)
tests_unit_check_onion_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags)
tests_unit_check_selection_walk_SOURCES = tests/unit/check_selection_walk.c $(fault_alloc)
tests_unit_check_selection_walk_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags),--wrap=qsort
tests_unit_check_subfiles_open_SOURCES = tests/unit/check_subfiles_open.c tests/lib/fault_call.c tests/lib/fault_call.h $(fault_alloc) $(scratch)
tests_unit_check_subfiles_open_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags) $(fault_call_flags)
tests_unit_check_file_set_SOURCES = tests/unit/check_file_set.c tests/lib/onion_builder.h tests/lib/fault_call.c tests/lib/fault_call.h $(fault_alloc) $(scratch)
tests_unit_check_file_set_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags) $(fault_call_flags),--wrap=h5_io_open_fd,--wrap=h5_io_open_remote,--wrap=h5_remote_url
tests_unit_check_file_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=clock_gettime
tests_unit_check_cache_image_SOURCES = tests/unit/check_cache_image.c $(fault_alloc)
tests_unit_check_cache_image_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags)
tests_unit_check_filter_SOURCES = tests/unit/check_filter.c $(fault_alloc)
tests_unit_check_filter_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags)
tests_unit_check_bucket_SOURCES = tests/unit/check_bucket.c $(fault_alloc) $(strict_lock)
tests_unit_check_bucket_LDFLAGS = $(AM_LDFLAGS) $(strict_lock_flags) $(fault_alloc_flags),--wrap=clock_gettime,--wrap=h5_remote_list,--wrap=h5_remote_tag
tests_unit_check_bucket_objects_SOURCES = tests/unit/check_bucket_objects.c $(fault_alloc) $(strict_lock)
tests_unit_check_bucket_objects_LDFLAGS = $(AM_LDFLAGS) $(strict_lock_flags) $(fault_alloc_flags),--wrap=h5_open_file
tests_unit_check_grants_SOURCES = tests/unit/check_grants.c $(fault_alloc)
tests_unit_check_grants_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags)
tests_unit_check_identity_SOURCES = tests/unit/check_identity.c $(fault_alloc)
tests_unit_check_identity_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags)
tests_unit_check_node_number_SOURCES = tests/unit/check_node_number.c $(fault_alloc) $(vfs_scene)
tests_unit_check_node_number_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags)
request_scene = tests/lib/request_scene.c tests/lib/request_scene.h tests/lib/fault_call.c tests/lib/fault_call.h \
	tests/lib/vfs_digest.c tests/lib/vfs_digest.h $(fault_alloc) $(vfs_scene)
tests_unit_check_remembered_SOURCES = tests/unit/check_remembered.c $(request_scene)
tests_unit_check_remembered_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags) $(fault_call_flags)
tests_unit_check_requests_SOURCES = tests/unit/check_requests.c $(request_scene)
tests_unit_check_requests_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags) $(fault_call_flags)
tests_unit_check_request_effects_SOURCES = tests/unit/check_request_effects.c $(request_scene)
tests_unit_check_request_effects_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags) $(fault_call_flags)
tests_unit_check_request_faults_SOURCES = tests/unit/check_request_faults.c $(request_scene)
tests_unit_check_request_faults_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags) $(fault_call_flags)
tests_unit_check_request_again_SOURCES = tests/unit/check_request_again.c $(request_scene)
tests_unit_check_request_again_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags) $(fault_call_flags),--wrap=h5_charge_set
tests_unit_check_request_pieces_SOURCES = tests/unit/check_request_pieces.c $(request_scene)
tests_unit_check_request_pieces_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags) $(fault_call_flags)
tests_unit_check_mount_answers_SOURCES = tests/unit/check_mount_answers.c $(request_scene)
tests_unit_check_mount_answers_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags) $(fault_call_flags)
tests_unit_check_mount_tables_SOURCES = tests/unit/check_mount_tables.c $(request_scene)
tests_unit_check_mount_tables_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags) $(fault_call_flags)
tests_unit_check_held_SOURCES = tests/unit/check_held.c $(vfs_scene)
tests_unit_check_changed_files_SOURCES = tests/unit/check_changed_files.c tests/lib/fault_call.c tests/lib/fault_call.h tests/lib/fault_kinds.h $(fault_alloc) $(strict_lock) $(vfs_scene)
tests_unit_check_changed_files_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags) $(fault_call_flags) $(strict_lock_flags)
tests_unit_check_datatype_encode_SOURCES = tests/unit/check_datatype_encode.c $(fault_alloc) $(scratch)
tests_unit_check_datatype_encode_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags)
tests_unit_check_heap_write_SOURCES = tests/unit/check_heap_write.c $(scratch)
tests_unit_check_global_heap_write_SOURCES = tests/unit/check_global_heap_write.c tests/lib/heap_scene.c tests/lib/heap_scene.h $(crash_image) $(fault_alloc) $(scratch)
tests_unit_check_global_heap_write_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags)
tests_unit_check_value_guess_SOURCES = tests/unit/check_value_guess.c tests/lib/value_scene.h $(fault_alloc) $(scratch)
tests_unit_check_value_guess_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags)
tests_unit_check_value_parse_SOURCES = tests/unit/check_value_parse.c tests/lib/value_scene.h $(fault_alloc) $(scratch)
tests_unit_check_value_parse_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags)
unit_scene = tests/lib/unit_scene.c tests/lib/unit_scene.h $(crash_image) $(fault_alloc)
tests_unit_check_change_effects_SOURCES = tests/unit/check_change_effects.c $(unit_scene) $(index_target)
tests_unit_check_change_effects_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags)
tests_unit_check_give_back_SOURCES = tests/unit/check_give_back.c $(scratch)
tests_unit_check_change_saved_SOURCES = tests/unit/check_change_saved.c $(index_target) $(fault_alloc)
tests_unit_check_change_saved_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags)
tests_unit_check_change_unit_SOURCES = tests/unit/check_change_unit.c $(unit_scene) $(scratch)
tests_unit_check_change_unit_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags)
tests_unit_check_dense_faults_SOURCES = tests/unit/check_dense_faults.c $(dense_model) $(crash_image) tests/lib/fault_call.c tests/lib/fault_call.h $(fault_alloc)
tests_unit_check_dense_faults_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags) $(fault_call_flags)
tests_unit_check_write_faults_SOURCES = tests/unit/check_write_faults.c $(fault_alloc) $(scratch)
tests_unit_check_write_faults_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags)
tests_unit_check_tables_SOURCES = tests/unit/check_tables.c tests/lib/empty_scene.h $(scratch)
tests_unit_check_plot_SOURCES = tests/unit/check_plot.c tests/lib/empty_scene.h $(scratch)
tests_unit_check_zarr_attributes_SOURCES = tests/unit/check_zarr_attributes.c $(scratch)
tests_unit_check_view_documents_SOURCES = tests/unit/check_view_documents.c tests/lib/empty_scene.h $(scratch)
tests_unit_check_kerchunk_SOURCES = tests/unit/check_kerchunk.c tests/lib/empty_scene.h $(scratch)
tests_unit_check_zarr_dimensions_SOURCES = tests/unit/check_zarr_dimensions.c $(scratch)
AM_CPPFLAGS += -I$(top_srcdir)/tests/lib $(CHECK_CFLAGS)
LDADD = libh5fs.a $(CHECK_LIBS) $(FUSE_LIBS) $(JSON_LIBS) $(MD_LIBS) $(ZLIB_LIBS) $(FILTER_LIBS)
# A fetcher in the test's process.
idle_fetcher = tests/lib/idle_fetcher.h
if HAVE_LIBCURL
idle_fetcher += tests/lib/idle_fetcher.c
endif
tests_unit_check_fetcher_SOURCES = tests/unit/check_fetcher.c $(idle_fetcher)
tests_unit_check_fetcher_LDADD = $(CURL_LIBS) $(LDADD)
tests_unit_check_fetcher_start_SOURCES = tests/unit/check_fetcher_start.c $(fault_system) $(fault_alloc) $(scratch)
tests_unit_check_fetcher_start_LDFLAGS = $(AM_LDFLAGS) $(fault_system_flags) $(fault_alloc_flags),--wrap=dlopen,--wrap=dlsym,--wrap=dup2,--wrap=dup3,--wrap=fork,--wrap=waitpid
# A fetcher whose network is the test.
fake_curl = tests/lib/fake_curl.h
if HAVE_LIBCURL
fake_curl += tests/lib/fake_curl.c
endif
fake_curl_flags = -Wl,--wrap=clock_gettime,--wrap=time,--wrap=getrandom
transfer_scene = $(fake_curl) $(idle_fetcher) tests/lib/transfer_scene.h
if HAVE_LIBCURL
transfer_scene += tests/lib/transfer_scene.c
endif
tests_unit_check_transfers_SOURCES = tests/unit/check_transfers.c $(transfer_scene) $(fault_alloc)
tests_unit_check_transfers_LDFLAGS = $(AM_LDFLAGS) $(fake_curl_flags) $(fault_alloc_flags)
tests_unit_check_transfers_store_SOURCES = tests/unit/check_transfers_store.c $(transfer_scene) $(scratch) $(fault_alloc)
tests_unit_check_transfers_store_LDFLAGS = $(AM_LDFLAGS) $(fake_curl_flags) $(fault_alloc_flags)
tests_unit_check_transfers_disk_SOURCES = tests/unit/check_transfers_disk.c $(transfer_scene) $(scratch) $(fault_alloc)
tests_unit_check_transfers_disk_LDFLAGS = $(AM_LDFLAGS) $(fake_curl_flags) $(fault_alloc_flags)
tests_unit_check_credentials_SOURCES = tests/unit/check_credentials.c $(fake_curl) $(fault_alloc)
tests_unit_check_credentials_LDFLAGS = $(AM_LDFLAGS) $(fake_curl_flags) $(fault_alloc_flags)

# Whole-mount tests: one program a topic.
MOUNT_TESTS = \
	tests/mount/mount_append.py \
	tests/mount/mount_arguments.py \
	tests/mount/mount_array_header.py \
	tests/mount/mount_automount.py \
	tests/mount/mount_bad.py \
	tests/mount/mount_bad_structures.py \
	tests/mount/mount_big.py \
	tests/mount/mount_bounds.py \
	tests/mount/mount_command.py \
	tests/mount/mount_compact.py \
	tests/mount/cookbook.py \
	tests/mount/mount_copied_pair.py \
	tests/mount/mount_copy.py \
	tests/mount/mount_create.py \
	tests/mount/mount_declare.py \
	tests/mount/mount_errors.py \
	tests/mount/mount_faults.py \
	tests/mount/mount_filters.py \
	tests/mount/mount_extract.py \
	tests/mount/mount_folder.py \
	tests/mount/mount_folder_write.py \
	tests/mount/mount_fsx.py \
	tests/mount/mount_handles.py \
	tests/mount/mount_holes.py \
	tests/mount/mount_io_uring.py \
	tests/mount/mount_journals.py \
	tests/mount/mount_kill.py \
	tests/mount/mount_kill_tree.py \
	tests/mount/mount_lazy.py \
	tests/mount/mount_load.py \
	tests/mount/mount_links.py \
	tests/mount/mount_members.py \
	tests/mount/mount_members_write.py \
	tests/mount/mount_memmap.py \
	tests/mount/mount_model.py \
	tests/mount/mount_names.py \
	tests/mount/mount_naming.py \
	tests/mount/mount_naming_model.py \
	tests/mount/mount_new_files.py \
	tests/mount/mount_newest.py \
	tests/mount/mount_onion.py \
	tests/mount/mount_opens.py \
	tests/mount/mount_nfs.py \
	tests/mount/mount_options.py \
	tests/mount/mount_paged.py \
	tests/mount/mount_paged_append.py \
	tests/mount/mount_pages.py \
	tests/mount/mount_plugins.py \
	tests/mount/mount_partial_rows.py \
	tests/mount/mount_posix.py \
	tests/mount/mount_posix_names.py \
	tests/mount/mount_punch.py \
	tests/mount/mount_rare.py \
	tests/mount/mount_reclaim.py \
	tests/mount/mount_refused.py \
	tests/mount/mount_remote.py \
	tests/mount/mount_remote_faults.py \
	tests/mount/mount_remote_links.py \
	tests/mount/mount_remote_leaks.py \
	tests/mount/mount_remote_names.py \
	tests/mount/mount_remote_prefix.py \
	tests/mount/mount_remote_s3.py \
	tests/mount/mount_remote_disk.py \
	tests/mount/mount_remote_servers.py \
	tests/mount/mount_requests.py \
	tests/mount/mount_replace.py \
	tests/mount/mount_programs.py \
	tests/mount/mount_properties.py \
	tests/mount/mount_safety.py \
	tests/mount/mount_sandbox.py \
	tests/mount/mount_set_attributes.py \
	tests/mount/mount_shape.py \
	tests/mount/mount_shared_messages.py \
	tests/mount/mount_short_chunks.py \
	tests/mount/mount_signals.py \
	tests/mount/mount_space.py \
	tests/mount/mount_split_write.py \
	tests/mount/mount_sources.py \
	tests/mount/mount_statistics.py \
	tests/mount/mount_stress.py \
	tests/mount/mount_sparse.py \
	tests/mount/mount_structured.py \
	tests/mount/mount_subfiling.py \
	tests/mount/mount_swmr.py \
	tests/mount/mount_syncs.py \
	tests/mount/mount_text.py \
	tests/mount/mount_text_values.py \
	tests/mount/mount_tree.py \
	tests/mount/mount_unchanged.py \
	tests/mount/mount_unmount.py \
	tests/mount/mount_view_texts.py \
	tests/mount/mount_views.py \
	tests/mount/mount_wait.py \
	tests/mount/mount_worked_example.py \
	tests/mount/mount_write.py \
	tests/mount/mount_xarray.py \
	tests/mount/mount_zarr.py

# Commands that mount nothing.
OFFLINE_TESTS = \
	tests/offline/completion.py \
	tests/offline/crash_contents.py \
	tests/offline/crash_family.py \
	tests/offline/crash_links.py \
	tests/offline/crash_names.py \
	tests/offline/crash_shape.py \
	tests/offline/crash_shared.py \
	tests/offline/crash_split.py \
	tests/offline/crash_text.py \
	tests/layers.py \
	tests/offline/offline_check.py \
	tests/offline/offline_findings.py \
	tests/offline/offline_list.py \
	tests/offline/offline_progress.py \
	tests/offline/offline_reclaim.py \
	tests/offline/offline_refused.py \
	tests/offline/offline_space.py \
	tests/offline/request_faults.py \
	tests/offline/request_syncs.py \
	tests/offline/shared_messages.py

EXTRA_DIST += $(MOUNT_TESTS) $(OFFLINE_TESTS) \
	tests/judge/btree1_judge.py \
	tests/judge/btree2_judge.py \
	tests/judge/dense_judge.py \
	tests/judge/dense_states.py \
	tests/judge/conformance-exceptions \
	tests/judge/conformance.py \
	tests/judge/copy_corpus.py \
	tests/judge/folder_corpus.py \
	tests/judge/memory_corpus.py \
	tests/lib/contents_model.py \
	tests/lib/copytree.py \
	tests/lib/crashlib.py \
	tests/lib/dense_names.py \
	tests/lib/pieceslib.py \
	tests/lib/shared_tables.py \
	tests/judge/crash_judge.py \
	tests/judge/judge_walk.py \
	tests/judge/h5wasm.mjs \
	tests/judge/judges.py \
	tests/judge/dataset_create_judge.py \
	tests/judge/dataset_write_cuts.py \
	tests/judge/dataset_write_judge.py \
	tests/judge/header_create_judge.py \
	tests/judge/global_heap_judge.py \
	tests/judge/group_judge.py \
	tests/judge/names_judge.py \
	tests/judge/newest_files.py \
	tests/judge/replacement_judge.py \
	tests/judge/runner.py \
	tests/judge/shape_judge.py \
	tests/judge/header_edit_judge.py \
	tests/judge/header_insert_judge.py \
	tests/lib/injectlib.py \
	tests/judge/index_structure.py \
	tests/judge/symbol_table_judge.py \
	tests/judge/credential_server.py \
	tests/judge/object_server.py \
	tests/judge/other_servers.py \
	tests/judge/remote_corpus.py \
	tests/judge/tree_walk.py \
	tests/judge/tunnel.py \
	tests/judge/zarr_corpus.py \
	tests/lib/make_worked_example.py \
	tests/lib/mountfacts.py \
	tests/lib/mountlib.py \
	tests/lib/remotelib.py \
	tests/lib/terminal.py \
	tests/lib/names_model.py \
	tests/lib/textlib.py \
	tests/lib/tree_calls.py \
	tests/lib/tree_contents.py \
	tests/lib/tree_library.py \
	tests/lib/tree_model.py \
	tests/lib/tree_names.py \
	tests/lib/tree_player.py \
	tests/lib/tree_racer.py \
	tests/lib/posixlib.py \
	tests/lib/sparse_walker.py \
	tests/lib/tree_steps.py \
	tests/lib/tree_values.py \
	tests/lib/viewlib.py \
	tests/lib/zarrlib.py

TESTS = $(MOUNT_TESTS) $(OFFLINE_TESTS)
# A mount without FUSE, for tests in Python.
check_PROGRAMS = tests/lib/vfs_shell
tests_lib_vfs_shell_SOURCES = tests/lib/vfs_shell.c tests/lib/vfs_shell.h tests/lib/vfs_shell_files.c tests/lib/vfs_shell_names.c \
	tests/lib/vfs_digest.c tests/lib/vfs_digest.h \
	tests/lib/fault_io.c tests/lib/fault_io.h tests/lib/fault_call.c tests/lib/fault_call.h $(fault_alloc) $(strict_lock)
tests_lib_vfs_shell_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags) $(fault_call_flags) $(strict_lock_flags)
if HAVE_CHECK
check_PROGRAMS += $(UNIT_TESTS)
TESTS += $(UNIT_TESTS)
endif
TEST_EXTENSIONS = .py
PY_LOG_COMPILER = $(PYTHON3)
# Where tests in Python find what they share.
tests_path = $(abs_top_srcdir)/tests/lib:$(abs_top_srcdir)/tests/judge:$(abs_top_srcdir)/tests/fixtures
AM_TESTS_ENVIRONMENT = \
	H5FS='$(abs_builddir)/src/h5fs'; export H5FS; \
	H5FS_VFS_SHELL='$(abs_builddir)/tests/lib/vfs_shell'; export H5FS_VFS_SHELL; \
	H5FS_TEST_DATA='$(abs_builddir)/tests/data'; export H5FS_TEST_DATA; \
	H5FS_CONFORMANCE=$(CONFORMANCE); export H5FS_CONFORMANCE; \
	PYTHONPATH=$(tests_path); export PYTHONPATH; \
	PYTHONDONTWRITEBYTECODE=1; export PYTHONDONTWRITEBYTECODE;

# TEST: a command, run as make check runs a test. For contrib/mutate.
.PHONY: run-test
run-test:
	@$(AM_TESTS_ENVIRONMENT) srcdir='$(srcdir)'; export srcdir; exec $(TEST)

# Each script writes files named after itself: PYTHON script OUTPUT_FOLDER.
FIXTURES = \
	tests/fixtures/bad_structures.py \
	tests/fixtures/btree1_write.py \
	tests/fixtures/btree2_write.py \
	tests/fixtures/check.py \
	tests/fixtures/chunk_index.py \
	tests/fixtures/crash_replay.py \
	tests/fixtures/chunk_index_write.py \
	tests/fixtures/dataset.py \
	tests/fixtures/dataset_write.py \
	tests/fixtures/datatype_encode.py \
	tests/fixtures/dense_write.py \
	tests/fixtures/filter_encode.py \
	tests/fixtures/filter_libs.py \
	tests/fixtures/fixed_array_write.py \
	tests/fixtures/attribute_write.py \
	tests/fixtures/group_write.py \
	tests/fixtures/header_create.py \
	tests/fixtures/global_heap_write.py \
	tests/fixtures/header_edit.py \
	tests/fixtures/holes.py \
	tests/fixtures/malformed.py \
	tests/fixtures/members.py \
	tests/fixtures/name_change.py \
	tests/fixtures/object.py \
	tests/fixtures/object_removal.py \
	tests/fixtures/rare_headers.py \
	tests/fixtures/rare_heaps.py \
	tests/fixtures/rare_layouts.py \
	tests/fixtures/rare_sizes.py \
	tests/fixtures/read_faults.py \
	tests/fixtures/reading.py \
	tests/fixtures/structured.py \
	tests/fixtures/symbol_table_write.py \
	tests/fixtures/value.py \
	tests/fixtures/virtual.py \
	tests/fixtures/write_faults.py
# What several of them share.
FIXTURE_MODULES = \
	tests/fixtures/expected.py \
	tests/fixtures/h5bytes.py \
	tests/fixtures/h5dataset.py \
	tests/fixtures/h5heap.py \
	tests/fixtures/cache_image.py \
	tests/fixtures/libhdf5.py \
	tests/fixtures/onion.py \
	tests/fixtures/subfiles.py \
	tests/fixtures/tree_files.py \
	tests/fixtures/vbz.py
EXTRA_DIST += $(FIXTURES) $(FIXTURE_MODULES)
check_DATA = tests/data/stamp
tests/data/stamp: $(FIXTURES) $(FIXTURE_MODULES)
	@mkdir -p tests/data
	$(AM_V_GEN)for script in $(FIXTURES); do \
		PYTHONPATH=$(tests_path) PYTHONDONTWRITEBYTECODE=1 $(PYTHON3) $(srcdir)/$$script tests/data || exit 1; \
	done; touch $@

clean-local:
	rm -rf tests/data

# For an hour and more: readers along with a writer, load, random sequences, crashes and killed daemons, each with other seeds than in `make check`.
SOAK_SECONDS = 3600
SOAK_SEQUENCES = 20000
SOAK_KILLS = 2000
SOAK_SEEDS = 20
.PHONY: soak
soak: src/h5fs tests/lib/vfs_shell tests/unit/crash_replay tests/data/stamp
	@$(AM_TESTS_ENVIRONMENT) \
	H5FS_FOLLOW_SECONDS=$(SOAK_SECONDS) $(PYTHON3) $(srcdir)/tests/mount/mount_swmr.py && \
	H5FS_LOAD_SECONDS=60 $(PYTHON3) $(srcdir)/tests/mount/mount_load.py && \
	H5FS_MODEL_SEED=random H5FS_MODEL_SEQUENCES=$(SOAK_SEQUENCES) $(PYTHON3) $(srcdir)/tests/mount/mount_model.py && \
	H5FS_TREE_SEED=random H5FS_TREE_SEQUENCES=$(SOAK_SEQUENCES) $(PYTHON3) $(srcdir)/tests/mount/mount_tree.py && \
	H5FS_KILLS=$(SOAK_KILLS) $(PYTHON3) $(srcdir)/tests/mount/mount_kill.py && \
	H5FS_KILLS=$(SOAK_KILLS) H5FS_SEED=soak $(PYTHON3) $(srcdir)/tests/mount/mount_kill_tree.py && \
	H5FS_FAULT_STEP=1 $(PYTHON3) $(srcdir)/tests/offline/request_faults.py && \
	for seed in `seq 2 $(SOAK_SEEDS)`; do \
		srcdir=$(srcdir) H5FS_CRASH_SEED=$$seed tests/unit/crash_replay && \
		H5FS_CRASH_SEED=$$seed H5FS_CRASH_STATES=400 $(PYTHON3) $(srcdir)/tests/offline/crash_contents.py || exit 1; \
	done

# What asks libhdf5 about files that h5fs has written. `make check` asks the newer versions too, about some of the files, where
# contrib/judges has made them; this makes them, and asks about every file.
JUDGED_TESTS = \
	tests/unit/check_btree1_write \
	tests/unit/check_btree2_faults \
	tests/unit/check_btree2_write \
	tests/unit/check_chunk_index_write \
	tests/unit/check_dataset_create \
	tests/unit/check_dataset_faults \
	tests/unit/check_dataset_write \
	tests/unit/check_family \
	tests/unit/check_fixed_array_write \
	tests/unit/check_group_faults \
	tests/unit/check_group_write \
	tests/unit/check_header_create \
	tests/unit/check_header_edit \
	tests/unit/check_header_faults \
	tests/unit/check_header_insert \
	tests/unit/check_replacement \
	tests/unit/check_shape \
	tests/unit/check_symbol_table_faults \
	tests/unit/check_symbol_table_write \
	tests/unit/check_transaction \
	tests/unit/check_tree \
	tests/unit/check_write_faults \
	tests/unit/crash_replay \
	tests/mount/cookbook.py \
	tests/mount/mount_append.py \
	tests/mount/mount_fsx.py \
	tests/mount/mount_kill.py \
	tests/mount/mount_kill_tree.py \
	tests/mount/mount_load.py \
	tests/mount/mount_model.py \
	tests/mount/mount_paged_append.py \
	tests/mount/mount_punch.py \
	tests/mount/mount_reclaim.py \
	tests/mount/mount_sandbox.py \
	tests/mount/mount_space.py \
	tests/mount/mount_split_write.py \
	tests/mount/mount_swmr.py \
	tests/mount/mount_syncs.py \
	tests/mount/mount_write.py \
	tests/offline/crash_contents.py \
	tests/offline/crash_family.py \
	tests/offline/crash_links.py \
	tests/offline/crash_names.py \
	tests/offline/crash_shape.py \
	tests/offline/crash_split.py \
	tests/offline/offline_reclaim.py \
	tests/offline/offline_refused.py
.PHONY: judge-newer
judge-newer:
	$(srcdir)/contrib/judges make
	@status=0; H5FS_JUDGE=all CK_TIMEOUT_MULTIPLIER=6 $(MAKE) check TESTS="$(JUDGED_TESTS)" || status=1; \
	for test in $(JUDGED_TESTS); do \
		log=$${test%.py}; \
		sed -n 's/^:test-result: /result /p' $$log.trs; \
		sed -nE 's/.*Checks: ([0-9]+), Failures: ([0-9]+), Errors: ([0-9]+)(, Skipped: ([0-9]+))?.*/checks \1 \2 \3 \5/p' $$log.log; \
	done | awk '$$1 == "result" { if ($$2 != "PASS") bad++; else good++ } \
		$$1 == "checks" { good += $$2 - $$3 - $$4 - ($$3 + $$4 == 0); missed += $$5 } \
		END { printf "%d passed, %d failed, %d skipped\n", good, bad, missed }'; \
	exit $$status

# Every byte of the files that `make check` takes some of.
.PHONY: malformed
malformed: tests/unit/check_malformed tests/data/stamp
	@$(AM_TESTS_ENVIRONMENT) H5FS_MALFORMED=all tests/unit/check_malformed

# Real files and what libhdf5 says of them; not part of the project. Of the common files, and of those whose memory is watched, one in COMMON_STEP.
CONFORMANCE = $(top_srcdir)/../shared/conformance
COMMON_STEP = 1
common_files = sed -n '1~$(COMMON_STEP)p' $(CONFORMANCE)/core.txt
need_conformance = \
	test -f $(CONFORMANCE)/check.py || { \
		echo "no conformance files at $(CONFORMANCE): skipped"; \
		echo "0 passed, 0 failed, 1 skipped"; exit 0; }; \
	PYTHONPATH=$(tests_path) PYTHONDONTWRITEBYTECODE=1; export PYTHONPATH PYTHONDONTWRITEBYTECODE

# conformance: the common files, the corners, and malformed ones; conformance-all: every file there is, or with CORPUS_HALF=0 or 1 every other
# one; -copy: copies of the mounts; -memory: what the daemon takes.
.PHONY: conformance conformance-all conformance-copy conformance-memory
conformance: src/h5fs
	@$(need_conformance); status=0; \
	check() { $(PYTHON3) $(CONFORMANCE)/check.py --h5fs src/h5fs "$$@"; }; \
	$(common_files) | check --corpus $(CONFORMANCE)/corpus --truth $(CONFORMANCE)/truth --list /dev/stdin || status=1; \
	check --corpus $(CONFORMANCE)/edge/corpus --truth $(CONFORMANCE)/edge/truth || status=1; \
	check --bad $(CONFORMANCE)/bad || status=1; \
	exit $$status

conformance-all: src/h5fs
	@$(need_conformance); \
	H5FS='$(abs_builddir)/src/h5fs' $(PYTHON3) $(srcdir)/tests/judge/conformance.py $(CONFORMANCE) $(srcdir)/tests/judge/conformance-exceptions $(CORPUS_HALF)

# The common files again, as URLs of a web server.
.PHONY: conformance-remote
conformance-remote: src/h5fs
	@$(need_conformance); \
	H5FS='$(abs_builddir)/src/h5fs' PYTHONPATH='$(tests_path)' $(PYTHON3) $(srcdir)/tests/judge/remote_corpus.py $(CONFORMANCE) --list $(CONFORMANCE)/core.txt

conformance-memory: src/h5fs
	@$(need_conformance); \
	H5FS='$(abs_builddir)/src/h5fs' PYTHONPATH='$(tests_path)' $(PYTHON3) $(srcdir)/tests/judge/memory_corpus.py $(CONFORMANCE)/corpus $(COMMON_STEP)

# The mount of a folder against those of its files, also malformed ones.
.PHONY: conformance-folder
conformance-folder: src/h5fs
	@$(need_conformance); status=0; \
	for folder in corpus bad; do \
		H5FS='$(abs_builddir)/src/h5fs' PYTHONPATH='$(tests_path)' $(PYTHON3) $(srcdir)/tests/judge/folder_corpus.py $(CONFORMANCE)/$$folder || status=1; \
	done; exit $$status

# The Zarr views of the common files.
.PHONY: conformance-zarr
conformance-zarr: src/h5fs
	@$(need_conformance); sed 's|^|$(CONFORMANCE)/corpus/|' $(CONFORMANCE)/core.txt | \
	H5FS='$(abs_builddir)/src/h5fs' xargs -d '\n' $(PYTHON3) $(srcdir)/tests/judge/zarr_corpus.py

conformance-copy: src/h5fs
	@$(need_conformance); \
	$(common_files) | H5FS='$(abs_builddir)/src/h5fs' PYTHONPATH='$(tests_path)' $(PYTHON3) $(srcdir)/tests/judge/copy_corpus.py $(CONFORMANCE)/corpus /dev/stdin
