/* In the place of another part of a cuDNN, and of NVRTC. */
extern int yoke_part;
int yoke_part;
