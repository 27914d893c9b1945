/* Opens a store, writes a record and reads it again. */
#include <flashgrain.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    fg_error *error;
    fg_options *options = fg_options_new();
    fg_store *store;
    fg_tree *tree;
    void *value;
    size_t length;
    if (argc != 2 || fg_options_add_path(options, argv[1], &error) || fg_store_create(options, &store, &error) ||
        fg_tree_open(store, "fruit", FG_TREE_KIND_B_TREE, 0, &tree, &error) ||
        fg_tree_put(tree, "apple", 5, "red", 3, &error) || fg_tree_get(tree, "apple", 5, &value, &length, &error) ||
        fg_store_close(store, &error)) {
        fprintf(stderr, "%s\n", argc == 2 ? fg_error_message(error) : "usage: first DIRECTORY");
        return 1;
    }
    printf("%.*s\n", (int)length, (const char *)value);
    fg_free(value);
    fg_tree_free(tree);
    fg_store_free(store);
    fg_options_free(options);
    return 0;
}
